// Written by `everkept install opencode`; `everkept uninstall opencode` removes it.
//
// Hands OpenCode's events to Everkept's hook: one short process an event, its payload on standard input, no network.
// Events are kept in order, the agent never waits for one that only reports, and a failure is never the agent's.

import { spawn } from "node:child_process"

const HOOK = __EVERKEPT_HOOK_ARGV__
const WAIT_MS = 4000
const SESSIONS_MAX = 64
const REPORTED = ["session.created", "session.idle", "session.deleted", "session.compacted", "session.error"]

// Run the hook on one event; what it printed, or nothing where it failed or took too long.
function run(payload) {
  return new Promise((resolve) => {
    let said = ""
    let child
    const timer = setTimeout(() => {
      child?.kill()
      finish()
    }, WAIT_MS)
    const finish = () => {
      clearTimeout(timer)
      resolve(said.trim())
    }
    try {
      child = spawn(HOOK[0], HOOK.slice(1), { stdio: ["pipe", "pipe", "ignore"], windowsHide: true })
      child.on("error", finish)
      child.on("close", finish)
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (chunk) => (said += chunk))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(payload))
    } catch {
      finish()
    }
  })
}

function remember(map, key, value) {
  map.set(key, value)
  if (map.size > SESSIONS_MAX) map.delete(map.keys().next().value)
}

function wordsOf(part) {
  return part.type === "text" ? part.text : (part.filename ?? part.prompt ?? "")
}

export const Everkept = async ({ directory, worktree }) => {
  let last = Promise.resolve("")
  const started = new Map()
  const asked = new Map()

  const send = (event, sessionID, rest) => {
    const at = new Date().toISOString()
    const payload = { hook_event_name: event, sessionID, cwd: directory, worktree, occurred_at: at, ...rest }
    last = last.then(() => run(payload)).catch(() => "")
    return last
  }

  // A tool that failed is only told as a part of its message.
  const failed = (part) => {
    if (part?.type !== "tool" || part.state?.status !== "error") return
    const { tool, callID, sessionID, state } = part
    void send("tool.execute.after", sessionID, { tool, callID, args: state.input, error: state.error })
  }

  return {
    dispose: async () => {
      await last
    },
    event: async ({ event }) => {
      if (event.type === "message.part.updated") return failed(event.properties?.part)
      if (!REPORTED.includes(event.type)) return
      const properties = event.properties ?? {}
      const id = properties.sessionID ?? properties.info?.id
      const answer = send(event.type, id, { properties })
      if (event.type === "session.created" && id) remember(started, id, answer)
    },
    "chat.message": async (input, output) => {
      const id = input?.sessionID
      const typed = (output?.parts ?? []).filter((part) => !part.synthetic)
      const prompt = typed.map(wordsOf).filter(Boolean).join("\n")
      const messageID = input?.messageID ?? output?.message?.id
      const answer = send("chat.message", id, { prompt, messageID, model: input?.model, mode: input?.agent })
      if (id) remember(asked, id, answer)
    },
    "tool.execute.after": async (input, output) => {
      const { tool, callID, args, sessionID } = input ?? {}
      const { title, output: text, metadata } = output ?? {}
      void send("tool.execute.after", sessionID, { tool, callID, args, title, output: text, metadata })
    },
    "experimental.session.compacting": async (input) => {
      void send("experimental.session.compacting", input?.sessionID, {})
    },
    "experimental.chat.system.transform": async (input, output) => {
      if (!input?.sessionID || !Array.isArray(output?.system)) return
      for (const context of [await started.get(input.sessionID), await asked.get(input.sessionID)]) {
        if (context) output.system.push(context)
      }
    },
  }
}

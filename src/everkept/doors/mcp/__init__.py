"""The MCP door: eight tools over stdio (`everkept mcp`) and streamable HTTP (`/mcp` of `everkept serve`)."""

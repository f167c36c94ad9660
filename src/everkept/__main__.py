"""`python -m everkept` is the command `everkept`."""

from everkept.doors.cli.main import main

if __name__ == "__main__":
    main()

"""`python -m tame` is the command line."""

from tame.cli.app import main

main()

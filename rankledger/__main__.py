"""The command line, as `python -m rankledger`."""

from rankledger.pipeline.cli.app import main

if __name__ == "__main__":  # processes of `--backend processes` import this module
    main()

from experiments.command import reproduce, run_command

if __name__ == "__main__":
    run_command("paper", reproduce)

from experiments.command import benchmark, run_command

if __name__ == "__main__":
    run_command("benchmark", benchmark)

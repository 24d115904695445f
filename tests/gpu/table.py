"""The report of a run on a GPU: what was right, what failed and why, how fast it was."""
import collections
import datetime


def report(all_jobs, done, facts):
    steps = list(dict.fromkeys(job.step for job in all_jobs))
    lines = [f"# On a GPU: {facts['gpu'][0] if facts['gpu'] else facts['device']}", "", about(facts), "",
             "| Step | Right | Of | Commands not run | Seconds |", "| --- | ---: | ---: | ---: | ---: |"]
    for step in steps:
        keys = [job.key for job in all_jobs if job.step == step]
        some = [done[key] for key in keys if key in done]
        lines.append(f"| {step} | {sum(one['passed'] for one in some)} | {sum(one['total'] for one in some)} | {len(keys) - len(some)} | "
                     f"{sum(one['seconds'] for one in some):.0f} |")
    lines += ["", *failures(steps, all_jobs, done), *speeds(done), *kernels(done)]
    return "\n".join(lines).rstrip() + "\n"


def about(facts):
    gpu = f"{facts['gpu'][0]}, driver {facts['gpu'][1]}, {facts['gpu'][2]}" if facts["gpu"] else f"device {facts['device']}"
    sample = " Suites are samples." if facts["cases_left_out"] else ""
    today = datetime.date.today().isoformat()
    return (f"{today}, {gpu}; PyTorch {facts['pytorch'] or facts['torch']}, Retrograd {facts['commit']}. "
            f"{facts['seconds']} seconds.{sample} Made by `scripts/on-gpu` (docs/gpu.md).")


def failures(steps, all_jobs, done):
    """Each reason once, with the cases that have it."""
    lines = []
    for step in steps:
        reasons = reasons_of(step, all_jobs, done)
        if reasons:
            lines += [f"### {step}", ""]
            lines += [f"- {', '.join(f'`{case}`' for case in cases)}: {reason}" for reason, cases in reasons.items()]
            lines.append("")
    return ["## What failed", "", *lines] if lines else ["Nothing that ran failed.", ""]


def reasons_of(step, all_jobs, done):
    reasons = collections.defaultdict(list)
    for job in all_jobs:
        if job.step == step:
            for case, reason in (done.get(job.key, {}).get("failures") or {}).items():
                reasons[shortened(reason)].append(job.key if case == "the command" else case)
    return reasons


def shortened(reason):
    text = " ".join(reason.split()).replace("|", "\\|")
    return text if len(text) <= 300 else text[:297] + "..."


def speeds(done):
    """Milliseconds of a step's forward and backward: eager PyTorch, Retrograd, Retrograd with statistics of every value."""
    names = [key.removeprefix("bench ") for key in done if key.startswith("bench ") and done[key]["figures"]]
    if not names:
        return []
    lines = ["## Speed", "", "Milliseconds of forward and backward; LibTorch's eager run is made by the program, without Python.", "",
             "| Model | PyTorch's eager | LibTorch's eager | Retrograd | of LibTorch's eager | with statistics | of Retrograd's run |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for name in names:
        ours = done[f"bench {name}"]["figures"]
        eager = (done.get(f"eager {name}") or {}).get("figures")
        run, libtorch = ours["forward"] + ours["backward"], ours["eager_forward"] + ours["eager_backward"]
        python = f"{eager['forward'] + eager['backward']:.2f}" if eager else "-"
        lines.append(f"| {name} | {python} | {libtorch:.2f} | {run:.2f} | {ratio(run, libtorch)} | {ours['recorded']:.2f} | "
                     f"{ratio(ours['recorded'], run)} |")
    return [*lines, ""]


def ratio(a, b):
    return f"{a / b:.2f}" if b else "-"


def kernels(done):
    figures = (done.get("kernels") or {}).get("figures")
    if not figures:
        return []
    lines = ["## Kernels", "", "Share of the bandwidth of a copy.", "", "| Kernel | Share |", "| --- | ---: |"]
    return [*lines, *(f"| {name} | {share:.2f} |" for name, share in figures.items()), ""]

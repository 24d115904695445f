"""What came of recorded steps, as text."""


def total(records, key):
    return sum(record[one].get(key) or 0 for record in records for one in ("first", "fifth") if one in record)


def summary(records):
    made = [record for record in records if "not made" not in record]
    right = [record for record in made if not record["found"]]
    linked, ambiguous = total(made, "linked"), total(made, "ambiguous")
    return (
        f"{len(records)} kinds of steps tried, {len(records) - len(made)} not made, {len(made)} recorded twice, "
        f"{len(right)} right in all. {total(made, 'ops'):,} ops, {total(made, 'compared'):,} hashes compared, "
        f"{total(made, 'differing'):,} differ; {linked:,} backward ops linked, {ambiguous:,} ambiguous, "
        f"{total(made, 'unlinked'):,} without a link, {total(made, 'wrong links'):,} links contradicted by operands."
    )


def row(record):
    said = record.get("said", {})
    more = ", ".join(f"{key}: {value}" for key, value in said.items() if key != "model" and value not in (None, False))
    one = {"seed": record["seed"], "step": record.get("architecture") or record["kind"], "drawn": more}
    if record["world"] > 1:
        one["step"] += f", {record['world']} ranks"
    for key in ("ops", "compared", "differing", "linked", "ambiguous"):
        one[key] = total([record], key)
    found = "not made: " + record["not made"][:80] if "not made" in record else "; ".join(record["found"])[:300]
    return [*one.values(), found.replace("|", "/").replace("\n", " ") or "right"]


HEAD = ["seed", "step", "drawn", "ops", "hashes", "differ", "links", "ambiguous", "result"]


def tables(records):
    lines = ["| " + " | ".join(HEAD) + " |", "| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |"]
    return "\n".join([summary(records), "", *lines, *("| " + " | ".join(map(str, row(r))) + " |" for r in records), ""])

"""Generates meaningless sources, logs and tables. Files share little text, and every run makes the same ones."""

import json
import random

NOUNS = ("account badge barrel basin beacon bearing binder board bracket bridge bucket buffer cabin cable cargo carrier "
         "channel charter circuit column compass conveyor counter coupling cradle cursor delivery depot device dial drawer "
         "engine entry envelope factor fence filter flange folder frame funnel gauge gear grain hatch hinge hopper index "
         "invoice journal kernel ladder lantern ledger lever locker magnet manifest marker meter mirror module motor nozzle "
         "orbit order packet paddle panel parcel pillar pipe pivot pulley quota rail record relay reserve ribbon rotor "
         "scale schedule sensor shaft shelf signal socket spindle spring station stock storage strap switch tablet tank "
         "ticket timer token tower trace tray tunnel turbine valve vault vector vessel wheel winch window").split()
VERBS = ("adjust align apply assign attach balance bind build charge check claim clear close collect combine compare "
         "convert count deliver derive drain emit expand export fetch fill fold gather group import inspect join label "
         "limit list load lock map mark match measure merge move open order pack parse place plan pull push raise read "
         "refresh release render repair reset resolve scan seal send settle shift sort split stamp start store sum "
         "trim unpack update verify weigh wrap").split()
ADJECTIVES = "active blank bright cold daily early empty even fixed fresh idle inner large last late light lower main narrow".split()


def source(seed, size):
    """Returns a Python source of about `size` bytes."""
    chance = random.Random(f"source {seed}")
    noun, verb, adjective = (lambda words: lambda: chance.choice(words))(NOUNS), lambda: chance.choice(VERBS), lambda: chance.choice(ADJECTIVES)
    parts = [f'"""Keeps every {adjective()} {noun()} of the {noun()} and can {verb()} it."""\n\nimport json\nimport math\n']
    length = len(parts[0])
    while length < size:
        part = function(chance, noun, verb, adjective)
        parts.append(part)
        length += len(part)
    return "".join(parts)[:size].rsplit("\n", 1)[0] + "\n"


def function(chance, noun, verb, adjective):
    name = f"{verb()}_{adjective()}_{noun()}_{chance.randrange(1000)}"
    first, second = noun(), noun()
    lines = [f"\n\ndef {name}({first}, {second}_limit={chance.randrange(2, 900)}):",
             f'    """Tries to {verb()} the {adjective()} {first} before any {noun()} can {verb()} it."""']
    for _ in range(chance.randrange(3, 9)):
        one, other, number = noun(), noun(), chance.randrange(2, 5000)
        lines += chance.choice([
            [f"    {one} = {first}.{verb()}_{other}({number}, key=\"{adjective()}-{noun()}\")"],
            [f"    if len({first}) > {number}:", f"        raise ValueError(f\"{one} of {{{first}}} is beyond {number}\")"],
            [f"    for {one} in {first}.{other}s():", f"        {one}.{verb()}(math.floor({number} / {chance.randrange(2, 40)}))"],
            [f"    # The {adjective()} {one} comes before the {other}, since {noun()} {number} has none."],
            [f"    {one}_{other} = {{\"{noun()}\": {number}, \"{adjective()}_{noun()}\": {second}_limit * {chance.randrange(2, 99)}}}"],
        ])
    lines.append(f"    return json.dumps({first}.{verb()}_{noun()}({second}_limit), indent={chance.randrange(1, 9)})\n")
    return "\n".join(lines)


def build_log(size):
    """Returns the output of a build: similar lines with warnings between them."""
    chance = random.Random("build")

    def line(at):
        name = f"{chance.choice(NOUNS)}-{chance.choice(NOUNS)} v{chance.randrange(5)}.{chance.randrange(40)}.{chance.randrange(9)}"
        if at % 29 == 28:
            return (f"warning: unused variable: `{chance.choice(NOUNS)}`\n  --> src/{chance.choice(NOUNS)}.rs:"
                    f"{chance.randrange(900)}:{chance.randrange(80)}")
        return f"   {chance.choice(['Compiling', 'Checking', 'Fresh'])} {name}"
    return until(size, line) + "error: could not link `plant`: exit status 1\n"


def server_log(size):
    """Returns a server's log, one request per line."""
    chance = random.Random("server")

    def line(at):
        level = chance.choices(["INFO", "DEBUG", "WARN", "ERROR"], [80, 15, 4, 1])[0]
        return (f"2026-03-{at // 900 % 28 + 1:02d}T{at // 37 % 24:02d}:{at % 60:02d}:{chance.randrange(60):02d}.{chance.randrange(1000):03d}Z "
                f"{level:5} request={chance.randrange(1 << 32):08x} path=/{chance.choice(NOUNS)}s/{chance.randrange(10000)} "
                f"status={chance.choice([200, 200, 200, 204, 304, 404])} took={chance.randrange(4000) / 10} ms")
    return until(size, line)


def table(seed, size):
    """Returns a JSON list of rows."""
    chance = random.Random(f"table {seed}")

    def row(at):
        return json.dumps({"id": at, "name": f"{chance.choice(ADJECTIVES)} {chance.choice(NOUNS)}",
                           "value": chance.randrange(100000) / 100, "hall": chance.randrange(40),
                           "tags": chance.sample(VERBS, 2), "checked": chance.random() < 0.3})
    return "[\n" + until(size, lambda at: row(at) + ",") + row(-1) + "\n]\n"


def until(size, line):
    lines, length, at = [], 0, 0
    while length < size:
        lines.append(line(at) + "\n")
        length += len(lines[-1])
        at += 1
    return "".join(lines)

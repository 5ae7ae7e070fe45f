#!/usr/bin/env python3
"""What is in the file of a recording: read_recording.py FILE. tools/docs/recording.md says what each member means."""
import gzip, json, sys
r = json.load(gzip.open(sys.argv[1]))
print(r["program"], r["title"], r["created"], "on", ", ".join(f'{d["name"]} ({d["kind"]})' for d in r["devices"]))
print(", ".join(f"{len(rows)} {name}" for name, rows in r.items() if isinstance(rows, list)))
for n in r["nodes"]:
    print(n["name"], "->", ", ".join(r["nodes"][e["to"]]["name"] for e in n["edges"] if e["to"] >= 0))
for m in r["memory"]:
    print(r["devices"][m["device"]]["name"], m["peak"], "bytes at the peak:", [(b["owner"], b["bytes"]) for b in m["at_peak"][:5]])

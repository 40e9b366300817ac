/**
 * Keeps what explains the findings of a chaos: the journal and the calls of each run that is named in one, the logs of the
 * processes that it met, and all faults with their times.
 */
import type { RunState } from "kernai"
import * as fs from "node:fs"
import { join } from "node:path"
import { kinds } from "./runs.ts"

/** What a chaos knows when it is over. */
export interface Sources {
  readonly findings: ReadonlyArray<string>
  /** What processes said that ended by themselves. */
  readonly ends: ReadonlyArray<string>
  /** A line for each fault, with its time. */
  readonly faults: ReadonlyArray<string>
  /** A line for each call: run, call, process and time. */
  readonly ledger: ReadonlyArray<string>
  /** The folder of the logs, one of each process. */
  readonly logs: string
  readonly journalOf: (runId: string) => Promise<ReadonlyArray<RunState.RunRecord>>
}

/** Runs, and processes, of which evidence is kept at most. */
const most = 20

/** Writes the evidence of findings to a new folder. Does nothing without a finding. */
export const keep = async (
  folder: string,
  { ends, faults, findings, journalOf, ledger, logs }: Sources
): Promise<string | undefined> => {
  if (findings.length === 0) return undefined
  fs.mkdirSync(folder, { recursive: true })
  const put = (name: string, lines: ReadonlyArray<string>) =>
    fs.writeFileSync(join(folder, name), lines.map((line) => `${line}\n`).join(""))
  put("findings", findings)
  put("faults", faults)
  put("ends", ends)
  const named = (pattern: RegExp) => new Set(findings.flatMap((finding) => finding.match(pattern) ?? []))
  const processes = named(/\b[a-z]\.\d+\b/g)
  for (const runId of [...named(new RegExp(`\\b(${kinds.join("|")})\\d+\\b`, "g"))].slice(0, most)) {
    const records = await journalOf(runId)
    const calls = ledger.filter((line) => line.startsWith(`${runId} `))
    put(
      `${runId}.jsonl`,
      records.map((record) => JSON.stringify(record))
    )
    put(`${runId}.ledger`, calls)
    for (const { workerId } of records) processes.add(workerId.replace(/#.*/, ""))
    for (const line of calls) processes.add(line.split(" ")[2] ?? "")
  }
  for (const name of [...processes].map((process) => `${process}.log`).slice(0, 3 * most)) {
    if (fs.existsSync(join(logs, name))) fs.copyFileSync(join(logs, name), join(folder, name))
  }
  return folder
}

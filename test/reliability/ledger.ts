/**
 * What real processes saw, written outside the store, and put back in order.
 *
 * Each process appends to a file of its own, so that no line depends on another
 * process. Between them only the journal tells what came first: facts are merged
 * along its revisions, and what was stored by one that died before it could say
 * so is taken from there.
 */
import type { RunState } from "kernai"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Kept } from "../../src/testing/internal/reliabilityRules.ts"
import type { Fact } from "../../src/testing/internal/watchedProcess.ts"

/** Opens the file of one process. What a skill did is on the disk before the skill goes on. */
export const open = (folder: string, machine: string): { readonly push: (fact: Fact) => void } => {
  const file = fs.openSync(path.join(folder, `${machine}.ledger`), "a")
  return {
    push: (fact) => {
      fs.writeSync(file, `${JSON.stringify(fact)}\n`)
      if (fact.type === "started" || fact.type === "ended") fs.fsyncSync(file)
    }
  }
}

/** Tells all others that a process is dead. */
export const bury = (folder: string, machine: string): void =>
  fs.writeFileSync(path.join(folder, `${machine}.gone`), "")

/** The processes that are known to be dead. */
export const gone = (folder: string): ReadonlySet<string> =>
  new Set(fs.readdirSync(folder).flatMap((file) => (file.endsWith(".gone") ? [path.basename(file, ".gone")] : [])))

/** The facts of each process, in its own order. A line cut off by a kill is none. */
export const read = (folder: string): ReadonlyMap<string, ReadonlyArray<Fact>> =>
  new Map(
    fs
      .readdirSync(folder)
      .filter((file) => file.endsWith(".ledger"))
      .map((file) => [path.basename(file, ".ledger"), linesOf(fs.readFileSync(path.join(folder, file), "utf8"))])
  )

const linesOf = (text: string): ReadonlyArray<Fact> =>
  text
    .split("\n")
    .slice(0, -1)
    .map((line): Fact => JSON.parse(line))

/** The process that wrote a record: each of its lives has a number behind its name. */
export const machineOf = ({ workerId }: RunState.RunRecord): string => workerId.slice(0, workerId.lastIndexOf("#"))

/** One order of all facts that the journals allow. */
export const merge = (
  ledgers: ReadonlyMap<string, ReadonlyArray<Fact>>,
  kept: ReadonlyArray<Kept>
): ReadonlyArray<Fact> => {
  const queues = new Map(
    [...ledgers].map(([machine, facts]) => [machine, { facts: facts.filter(counts(machine, facts, kept)), next: 0 }])
  )
  const journals = new Map(kept.map((run) => [run.runId, run.journal]))
  const told = new Set<string>()
  for (const [machine, { facts }] of queues) {
    for (const fact of facts) if (fact.type === "stored") told.add(`${machine} ${placeOf(fact.record)}`)
  }
  const reached = new Map<string, number>()
  const merged: Array<Fact> = []
  const take = (fact: Fact) => {
    merged.push(fact)
    if (fact.type === "stored") reached.set(fact.record.runId, fact.record.revision)
  }
  const isNext = ({ revision, runId }: RunState.RunRecord) => revision <= (reached.get(runId) ?? 0) + 1
  const silent = (): Fact | undefined => {
    for (const [runId, journal] of journals) {
      const record = journal[reached.get(runId) ?? 0]
      if (record === undefined) continue
      const machine = machineOf(record)
      if (!told.has(`${machine} ${placeOf(record)}`)) return { type: "stored", machine, record }
    }
    return undefined
  }
  while (true) {
    let moved = false
    for (const queue of queues.values()) {
      for (let fact = queue.facts[queue.next]; fact !== undefined; fact = queue.facts[++queue.next]) {
        if (fact.type === "stored" && !isNext(fact.record)) break
        take(fact)
        moved = true
      }
    }
    if (moved) continue
    const fact = silent()
    // What is left says of itself that it follows a record nobody has: it is judged as it stands.
    if (fact === undefined) return [...merged, ...[...queues.values()].flatMap(({ facts, next }) => facts.slice(next))]
    take(fact)
  }
}

const placeOf = ({ revision, runId }: RunState.RunRecord): string => `${runId}:${revision}`

/** A verdict counts when whoever gave it took the run up with it. */
const counts =
  (machine: string, facts: ReadonlyArray<Fact>, kept: ReadonlyArray<Kept>) => (fact: Fact, index: number) => {
    if (fact.type !== "allowed") return true
    const isResume = (record: RunState.RunRecord) => record.op === "resume" && record.runId === fact.runId
    const said = facts.findIndex((later, at) => at > index && later.type === "stored" && isResume(later.record))
    if (said >= 0) return true
    const acknowledged = new Set(facts.flatMap((fact) => (fact.type === "stored" ? [placeOf(fact.record)] : [])))
    const journal = kept.find((run) => run.runId === fact.runId)?.journal ?? []
    return journal.some(
      (record) => isResume(record) && machineOf(record) === machine && !acknowledged.has(placeOf(record))
    )
  }

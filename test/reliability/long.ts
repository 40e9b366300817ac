/**
 * The long run: `npm run reliability`, in a few minutes; with `--full` in most of an hour.
 *
 * Real processes are killed, stopped and set against each other on SQLite and on
 * PostgreSQL, workers and a cluster live in chaos (`chaos --minutes 30`), runs are cut off at every commit and interrupted, fates are played,
 * inputs mutated, properties tried, tests run whole that `npm test` shortens, replies do
 * not end, workers are worn, and everything that is broken on purpose must be found. Prints a report and ends with 0 only when
 * nothing was lost, doubled, left behind or left unfound. Names choose parts:
 * `npm run reliability -- kills mutants`.
 */
import { Effect } from "effect"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { CrashMatrix } from "kernai/testing"
import * as Broken from "../support/brokenKernels.ts"
import * as Stores from "../support/brokenStores.ts"
import { subjects } from "../support/crashScripts.ts"
import * as Faults from "../cluster/faults.ts"
import * as Network from "../cluster/network.ts"
import * as Postgres from "../support/postgres.ts"
import { kernelOneByOne } from "../support/oneByOne.ts"
import { file, memory, type Place, postgres, sqlite } from "../support/stores.ts"
import type { Where } from "./child.ts"
import * as Chaos from "./chaos/chaos.ts"
import { flood, megabyte, shapes } from "./floods.ts"
import { fuzz } from "./fuzz.ts"
import { contentions, freezes, kills, type Outcome, type Settings, stops } from "./real.ts"
import { simulate } from "./simulation.ts"
import { soak } from "./soak.ts"
import { runWhole, tryProperties } from "./suite.ts"

const full = process.argv.includes("--full")
const minutesAt = process.argv.indexOf("--minutes") + 1
/** The minutes of chaos: `--minutes 30`. */
const minutes = minutesAt > 0 ? Number(process.argv[minutesAt]) : full ? 5 : 1
const asked = process.argv.slice(2).filter((word, at) => !word.startsWith("--") && at + 2 !== minutesAt)

/** What was done, how often, and which rules did not hold. */
interface Line {
  readonly what: string
  readonly count: number
  readonly least: number
  readonly findings: ReadonlyArray<string>
  readonly note?: string
  /** Why it was passed over. */
  readonly skipped?: string
}

/** What is not over by then is not over: minutes. */
const patience = (full ? 60 : 20) + minutes

// ---------------------------------------------------------------- processes

type Rounds = (count: number, settings: Settings) => Promise<Outcome>

/** Rounds in several places, each with a chance of its own. */
const many = async (name: string, rounds: Rounds, count: number, on: Where["kind"], piece: number): Promise<Line> => {
  const findings: Array<string> = []
  let [done, entered, refused] = [0, 0, 0]
  while (done < count) {
    const seed = Math.floor(Math.random() * 2 ** 32)
    const outcome = await rounds(Math.min(piece, count - done), { on, durable: true, seed })
    findings.push(...outcome.findings.map((finding) => `${finding} (seed ${seed})`))
    if (outcome.rounds === 0) findings.push("nothing was done")
    done += Math.max(1, outcome.rounds)
    entered += outcome.entered
    refused += outcome.refused
    if (findings.length > 0) break
  }
  const note = `${entered} skills entered${refused > 0 ? `, ${refused} times one of two was refused` : ""}`
  return { what: `${name} on ${on}`, count: done, least: count, findings, note }
}

const onAll = (name: string, rounds: Rounds, count: number, piece: number) => async () => {
  // Two databases at once: each waits for another disk, or for another process.
  const lines = await Promise.all((["sqlite", "postgres"] as const).map((on) => many(name, rounds, count, on, piece)))
  return [...lines, await many(name, rounds, Math.ceil(count / 10), "file", piece)]
}

/** Two workers for a while, on a disk that is waited for. The first kill comes late, the last may not come. */
const worn = async (): Promise<ReadonlyArray<Line>> => {
  const [minutes, killEvery] = full ? [20, 20] : [2, 5]
  const wear = { minutes, killEvery, slope: 1 }
  const { entered, findings, heaps, rounds, runs, slope } = await soak(wear, { durable: true })
  const heap = `a heap of ${heaps.map((megabytes) => megabytes.toFixed(0)).join(" ")} MB`
  const note = `${runs} runs, ${entered} skills entered, ${slope.toFixed(2)} MB a minute (less than 1): ${heap}`
  const least = Math.floor((minutes * 60) / killEvery) - 2
  return [{ what: `kills in ${minutes} minutes of two workers`, count: rounds, least, findings, note }]
}

/** Two runners of a cluster, of which one meets a fault while both have runs under way. */
const clustered = async (): Promise<ReadonlyArray<Line>> => {
  const lines: Array<Line> = []
  const put = (what: string, { findings, runs, takeover }: Faults.Outcome, least: number) => {
    const note = takeover === undefined ? {} : { note: `they went on elsewhere within ${takeover} ms` }
    lines.push({ what: `runs of a cluster: ${what}`, count: runs, least, findings, ...note })
  }
  for (const [name, fault] of Object.entries(Faults.faults)) put(name, await Faults.meet(fault), 100)
  const skipped = Network.refusal()
  if (skipped !== undefined) {
    lines.push({
      what: "runs of a cluster: packets dropped between two machines",
      count: 0,
      least: 0,
      findings: [],
      skipped
    })
  } else for (const name of Object.keys(Faults.cuts)) put(name, await Faults.meetApart(name), 100)
  put("a question answered twice at once", await Faults.answeredTwice(), 100)
  put("cancelled while their runner is dead", await Faults.cancelledWhileDown(), 20)
  return lines
}

/** Workers and a cluster under everything that may happen, side by side. */
const chaotic = async (): Promise<ReadonlyArray<Line>> => {
  const kinds = ["workers", "cluster"] as const
  const outcomes = await Promise.all(
    kinds.map(async (kind) => {
      const evidence = join(tmpdir(), `kernai-chaos-${kind}-${Date.now()}`)
      return { kind, ...(await Chaos.chaos({ kind, minutes, evidence })) }
    })
  )
  return outcomes.map(({ calls, ends, evidence, faults, findings, kind, runs, slowest }) => {
    const count = Object.values(faults).reduce((sum, count) => sum + count, 0)
    const each = Object.entries(faults).map(([name, count]) => `${name} ${count}`)
    const note = `${each.join(", ")}; ${runs} runs, ${calls} calls, at rest within ${slowest} ms, ${ends.length} processes ended by themselves${evidence === undefined ? "" : `; evidence in ${evidence}`}`
    return { what: `faults of ${kind} in ${minutes} minutes`, count, least: 5 * minutes, findings, note }
  })
}

// ---------------------------------------------------------------- virtual time

/** Every record is stored by itself. */
const apart: CrashMatrix.Settings = { kernel: kernelOneByOne }

const matrix = async (): Promise<ReadonlyArray<Line>> => {
  const lines: Array<Line> = []
  const put = async (
    what: string,
    { name, place }: Place,
    settings: CrashMatrix.Settings,
    least: number,
    wanted: ReadonlyArray<string> = []
  ) => {
    const chosen = subjects().filter(({ name = "" }) => wanted.length === 0 || wanted.includes(name))
    const reports = await Effect.runPromise(
      Effect.forEach(chosen, (subject) => CrashMatrix.run(subject, { store: place, ...settings }))
    )
    const count = reports.reduce((sum, { points }) => sum + points, 0)
    const findings = reports.flatMap(({ name, violations }) =>
      violations.map(({ cuts, detail, rule }) => `${rule}: ${name}: ${detail} (${JSON.stringify(cuts)})`)
    )
    lines.push({ what: `${what} on ${name}`, count, least, findings })
  }
  for (const place of [memory, file, sqlite]) await put("crash points", place, apart, 200)
  const together = "crash points, at every append,"
  await put(together, memory, {}, 200)
  // Every life of a run there has a database of its own, and that takes its time.
  await put(together, postgres, {}, full ? 200 : 40, full ? [] : ["tool", "three tools"])
  if (full) await put("crash points", postgres, apart, 500)
  await put("double crashes", memory, { ...apart, ways: ["before", "after"], again: ["unacknowledged"] }, 5_000)
  if (full)
    await put(
      "double crashes, in every way",
      memory,
      { ...apart, again: ["before", "unacknowledged", "after"] },
      10_000
    )
  // Where a fiber waits, or in most of an hour after every other operation.
  await put(
    `interruptions at ${full ? "every other operation" : "every wait"}`,
    memory,
    { ...apart, ways: [], interrupts: full ? "operations" : "waits" },
    full ? 10_000 : 200
  )
  return lines
}

const fates = async (): Promise<ReadonlyArray<Line>> => {
  const count = full ? 20_000 : 2_000
  const findings: Array<string> = []
  for (let seed = 1; seed <= count; seed++) {
    const outcome = await Effect.runPromise(simulate(seed))
    findings.push(...outcome.findings.map((finding) => `${finding} (seed ${seed})`))
  }
  return [{ what: "fates of two workers", count, least: count, findings }]
}

const fuzzed = async (): Promise<ReadonlyArray<Line>> => {
  const count = full ? 1_000_000 : 100_000
  const seed = Math.floor(Math.random() * 2 ** 31)
  const { findings, inputs } = await fuzz(count, seed, { patience: 100 })
  return [{ what: "mutated inputs", count: inputs, least: count, findings, note: `from seed ${seed}` }]
}

/** Every property of the tests on more cases than there is time for in the suite. */
const tried = async (): Promise<ReadonlyArray<Line>> => {
  const count = full ? 100_000 : 10_000
  const { findings, properties } = await tryProperties(count)
  return [{ what: `cases of each of ${properties} properties`, count, least: count, findings }]
}

/** The tests of which the suite runs only the quick ones. */
const whole = async (): Promise<ReadonlyArray<Line>> => {
  const { findings, passed } = await runWhole()
  return [{ what: "tests run whole that npm test shortens", count: passed, least: 100, findings }]
}

const flooded = async (): Promise<ReadonlyArray<Line>> => {
  const lines: Array<Line> = []
  for (const [name, shape] of Object.entries(shapes)) {
    const { error, peak } = await flood(shape, 1024 * megabyte)
    const findings = [
      ...(error?.includes("exceeds a limit") === true ? [] : [`R-20: ${name} ended with ${error}`]),
      ...(peak < 64 * megabyte ? [] : [`R-20: ${name} kept ${peak} bytes`])
    ]
    const note = `${(peak / megabyte).toFixed(1)} MB kept (less than 64)`
    lines.push({ what: `1 GB of ${name}`, count: 1, least: 1, findings, note })
  }
  return lines
}

// ---------------------------------------------------------------- what is broken

interface Mutant {
  readonly name: string
  /** The rule it breaks. */
  readonly rule: string
  /** The findings of one try; several are made where chance decides. */
  readonly find: (attempt: number) => Promise<ReadonlyArray<string>>
  readonly by: string
}

const inMatrix = (name: string, rule: string, settings: CrashMatrix.Settings): Mutant => ({
  name,
  rule,
  by: "crash points",
  find: async (attempt) => {
    const subject = subjects().filter(({ name }) => name === "tool" || name === "three tools")[attempt]
    if (subject === undefined) return []
    // To let everything run again breaks R-2 itself: whoever looks for that says the truth.
    const resumed = rule === "writes_once" ? subject : { ...subject, verdict: () => "retry" as const }
    const report = await Effect.runPromise(CrashMatrix.run(resumed, settings))
    return report.violations.map(({ rule }) => rule)
  }
})

const inFate = (name: keyof typeof Broken, rule: string): Mutant => ({
  name,
  rule,
  by: "fates",
  find: async (attempt) => (await Effect.runPromise(simulate(attempt + 1, Broken.named(name)))).findings
})

const inProcesses = (name: keyof typeof Broken, rule: string, by: string, rounds: Rounds): Mutant => ({
  name,
  rule,
  by,
  find: async (attempt) => (await rounds(10, { broken: name, seed: attempt })).findings
})

const mutants: ReadonlyArray<Mutant> = [
  inMatrix("thatStoresLate", "nothing_lost", { kernel: Broken.thatStoresLate }),
  inMatrix("thatLosesTheLast", "nothing_lost", { store: Stores.thatLosesTheLast }),
  inMatrix("withoutLaunch", "writes_once", { kernel: Broken.withoutLaunch }),
  inMatrix("thatAcknowledgesEarly", "writes_once", { kernel: Broken.thatAcknowledgesEarly }),
  inMatrix("thatChangesInput", "same_input", { kernel: Broken.thatChangesInput, ways: ["unacknowledged", "after"] }),
  inMatrix("thatForgetsResponses", "results_kept", {
    kernel: Broken.thatForgetsResponses,
    ways: ["unacknowledged", "after"]
  }),
  inMatrix("withoutRevisionCheck", "fenced", { kernel: Broken.withoutRevisionCheck, ways: ["stalled"] }),
  inMatrix("withoutRepeats", "append_repeatable", { store: Stores.withoutRepeats }),
  inFate("withoutLaunch", "writes_once"),
  inFate("thatRetriesInFlight", "writes_once"),
  inFate("withoutRevisionCheck", "fenced"),
  inProcesses("withoutLaunch", "writes_once", "kills", kills),
  inProcesses("thatRetriesInFlight", "writes_once", "kills", kills),
  inProcesses("withoutRevisionCheck", "fenced", "contentions", contentions),
  inProcesses("thatHoards", "nothing_left", "soak", (_, settings) =>
    soak({ minutes: 0.5, killEvery: 10, slope: 10 }, settings)
  )
]

const found = async (): Promise<ReadonlyArray<Line>> => {
  const missed: Array<string> = []
  for (const { by, find, name, rule } of mutants) {
    let isFound = false
    for (let attempt = 0; attempt < (by === "fates" ? 200 : 20) && !isFound; attempt++) {
      isFound = (await find(attempt)).some((finding) => finding.startsWith(rule))
    }
    if (!isFound) missed.push(`${name} was not found by ${by} as ${rule}`)
  }
  return [{ what: "mutants found", count: mutants.length - missed.length, least: mutants.length, findings: missed }]
}

// ---------------------------------------------------------------- the report

const parts: { readonly [name: string]: () => Promise<ReadonlyArray<Line>> } = {
  kills: onAll("kills", kills, 200, 25),
  stops: onAll("stops", stops, 50, 10),
  freezes: onAll("freezes", freezes, 50, 10),
  cluster: clustered,
  chaos: chaotic,
  contentions: onAll("contentions", contentions, 100, 25),
  matrix,
  fates,
  fuzz: fuzzed,
  properties: tried,
  tests: whole,
  floods: flooded,
  soak: worn,
  mutants: found
}

const unknown = asked.filter((name) => !(name in parts))
if (unknown.length > 0) {
  console.error(`no part '${unknown.join("', '")}'; there are: ${Object.keys(parts).join(", ")}`)
  process.exit(2)
}
if (!Postgres.available) {
  console.error("PostgreSQL is not there, and nothing is proved without it")
  process.exit(2)
}

const started = performance.now()
const seconds = () => ((performance.now() - started) / 1000).toFixed(0)
setTimeout(() => {
  console.error(`not over after ${patience} minutes`)
  process.exit(1)
}, patience * 60_000).unref()

const all: Array<Line> = []
for (const [name, part] of Object.entries(parts)) {
  if (asked.length > 0 && !asked.includes(name)) continue
  for (const line of await part()) {
    const { count, findings, least, note, skipped, what } = line
    if (skipped !== undefined) {
      console.log(`skip  ${what}: ${skipped}`)
      continue
    }
    const passed = findings.length === 0 && count >= least
    console.log(
      `${passed ? "pass" : "FAIL"}  ${what}: ${count} (at least ${least})${note === undefined ? "" : `, ${note}`}`
    )
    for (const finding of findings) console.log(`      ${finding}`)
    all.push(line)
  }
}

const findings = all.flatMap((line) => line.findings)
const of = (...rules: ReadonlyArray<string>) =>
  findings.filter((finding) => rules.some((rule) => finding.startsWith(rule))).length
const passed = findings.length === 0 && all.every(({ count, least }) => count >= least)
console.log(
  `lost: ${of("nothing_lost")}, doubled: ${of("writes_once", "same_input", "results_kept", "fenced")}, stuck: ${of("stuck")}, innocent failed: ${of("innocent_failed")}, in all: ${findings.length}`
)
console.log(`${passed ? "passed" : "FAILED"} in ${seconds()} s`)
process.exit(passed ? 0 : 1)

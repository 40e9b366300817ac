/**
 * Two workers on one store, under a seeded fate: every order of steps, every fault (F1 to F7).
 *
 * Everything happens in this process and in virtual time; one number makes it
 * happen again. What must hold is judged after every step (R-1 to,
 *
 */
import { Clock, Context, Effect, Layer, Logger, Number as Num, Option, Schedule, Stream } from "effect"
import {
  Agent,
  Kernel,
  Limits,
  MediaStore,
  ProtocolRegistry,
  Provider,
  Recorder,
  type RunEvent,
  RunStore,
  RunWorker,
  Skill,
  SkillRegistry,
  StreamPart
} from "kernai"
import { drive, type Machine, World } from "../../src/testing/internal/replay/virtualProcess.ts"
import { Judge, judgeKept, type Kept } from "../../src/testing/internal/reliabilityRules.ts"
import { type Fact, keyOf, watch, type Witness } from "../../src/testing/internal/watchedProcess.ts"
import { oneByOne } from "../support/oneByOne.ts"
import { randomOf } from "../support/random.ts"

export interface Outcome {
  readonly seed: number
  readonly findings: ReadonlyArray<string>
  readonly steps: number
  readonly faults: number
  readonly entered: number
}

/** A small generator of numbers: the same seed, the same world. */
const chanceOf = (seed: number) => {
  const next = randomOf(seed)
  return {
    next,
    below: (bound: number) => Math.floor(next() * bound),
    chance: (probability: number) => next() < probability
  }
}
type Random = ReturnType<typeof chanceOf>

const maxTokens = 400
const usage = StreamPart.finish("stop", { inputTokens: { total: 60 }, outputTokens: { total: 40 } }).usage

const model = { id: "scripted", capabilities: ["text"] as const }
const solo = Agent.make({ name: "solo", instructions: "", model, skills: "all", dialect: "tools" })
const agents = [
  solo,
  Agent.make({ name: "several", instructions: "", model, skills: "all", dialect: "tools", concurrency: 3 }),
  Agent.make({ name: "frugal", instructions: "", model, skills: "all", dialect: "tools", budget: { maxTokens } }),
  Agent.make({ name: "planner", instructions: "", model, skills: "all", taskConcurrency: 2 })
]

/** Plays one seed to the end of all its runs. */
export const simulate = Effect.fnUntraced(function* (
  seed: number,
  kernel: typeof Kernel.layerNoProvider = Kernel.layerNoProvider
): Effect.fn.Return<Outcome, never> {
  const random = chanceOf(seed)
  const world = new World({
    order: { pick: (count) => random.below(count), gives: () => random.chance(0.01) }
  })
  // Not a process: whoever comes back comes back by its clock, and so do leases.
  const fate = world.boot("fate")
  const store = yield* Effect.provideService(RunStore.makeMemory, Clock.Clock, fate.clock)
  const findings: Array<string> = []
  const judge = new Judge()
  const facts: Array<Fact> = []
  const told = new Map<string, Array<RunEvent.RunEvent>>()
  const witness: Witness = {
    said: new Map(),
    facts: {
      push: (fact) => {
        facts.push(fact)
        judge.see(fact)
        if (fact.type === "started" && fact.callId.includes("cut")) findings.push(`R-10: ${fact.callId} was entered`)
      }
    }
  }
  const site: Site = { kernel, seed, random, world, store, witness, facts, told, left: new Map(), failed: new Set() }

  const count = 1 + random.below(3)
  for (let index = 0; index < count; index++) {
    const agent = agents[random.below(agents.length)] ?? solo
    const submitted = world.boot("client").start(submit(site, agent, `r${index}`))
    yield* drive(world, () => submitted.pollUnsafe() !== undefined)
  }

  let faults = 0
  let workers = [boot(site, "a"), boot(site, "b")]
  const later = (milliseconds: number, action: () => void) => {
    fate.sleepers.add({ at: world.now + milliseconds, wake: action })
  }
  const strike = () => {
    const index = random.below(workers.length)
    const worker = workers[index]
    if (worker === undefined || worker.machine.status !== "running") return
    faults++
    const { machine } = worker
    const again = () => {
      workers = workers.map((other) => (other === worker ? boot(site, `${machine.name}'`) : other))
    }
    switch (random.below(4)) {
      case 0:
        machine.kill()
        return later(random.below(15_000), again)
      case 1:
        machine.stop()
        return later(random.below(30_000), () => machine.wake())
      case 2:
        machine.skew += random.below(120_000) - 60_000
        return
      default:
        // Told to stop: it has 10 seconds, and leaves nothing behind.
        worker.fiber.interruptUnsafe()
        return later(10_000, () => {
          if (machine.status === "running") {
            if (worker.fiber.pollUnsafe() === undefined) findings.push(`R-17: ${machine.name} did not end in time`)
            else if (machine.sleepers.size + machine.tasks.length > 0)
              findings.push(`nothing_left: ${machine.name} left work`)
          }
          machine.kill()
          again()
        })
    }
  }

  const heads = Effect.runSyncWith(Context.empty())
  const isOver = () => heads(store.list({ roots: true })).every((head) => isEnd(head))
  // Since when nobody holds a run, nor may take it up.
  const alone = new Map<string, number>()
  const lookForLost = () => {
    for (const head of heads(store.list({ roots: true }))) {
      const { lease, runId } = head
      if (lease !== undefined || isEnd(head)) alone.delete(runId)
      else if (!alone.has(runId)) alone.set(runId, world.now)
      else if (world.now - (alone.get(runId) ?? 0) > 30_000) findings.push(`nothing_lost: ${runId} was left to nobody`)
    }
  }
  let steps = 0
  while (steps++ < 60_000) {
    if (steps % 64 === 0 && isOver()) break
    if (steps % 64 === 0) lookForLost()
    if (faults < 12 && random.chance(0.02)) strike()
    if (!world.step() && !world.advance()) {
      findings.push("nothing moves any more")
      break
    }
    if (judge.findings.length + findings.length > 0) break
  }
  if (!isOver() && judge.findings.length + findings.length === 0) {
    const left = heads(store.list({ roots: true })).map((head) => `${head.runId} ${JSON.stringify(head.status)}`)
    findings.push(`nothing_lost: not over after ${steps} steps: ${left.join(", ")}`)
  }

  const kept = yield* Effect.orDie(keep(store))
  for (const { detail, rule } of [...judge.findings, ...judgeKept(facts, kept)]) findings.push(`${rule}: ${detail}`)
  findings.push(...judgeBudget(kept), ...judgeTold(site))
  for (const machine of world.machines) machine.kill()
  const entered = facts.filter((fact) => fact.type === "started").length
  return { seed, findings, steps, faults, entered }
})

interface Site {
  readonly kernel: typeof Kernel.layerNoProvider
  readonly seed: number
  readonly random: Random
  readonly world: World
  readonly store: RunStore.RunStoreShape
  readonly witness: Witness
  readonly facts: ReadonlyArray<Fact>
  readonly told: Map<string, Array<RunEvent.RunEvent>>
  /** When a machine last came to an end with a run, by both their names: the number of the fact. */
  readonly left: Map<string, number>
  /** The records of every append that failed, by the name of their machine. */
  readonly failed: Set<string>
}

/** A run whose model was cut off three times in a row has ended without an answer. */
const isEnd = ({ status }: RunStore.RunHead): boolean =>
  status.type === "completed" ||
  (status.type === "no_answer" && status.error.tag === "CutReplies") ||
  (status.type === "failed" && status.error.tag === "BudgetExhaustedError")

const keep = Effect.fnUntraced(function* (store: RunStore.RunStoreShape) {
  return yield* Effect.forEach(yield* store.list(), ({ runId }) =>
    Effect.map(Effect.zip(Stream.runCollect(store.read(runId)), store.load(runId)), ([journal, state]): Kept => ({
      runId,
      journal,
      state: Option.getOrUndefined(state)
    }))
  )
})

// ---------------------------------------------------------------- workers

const submit = (site: Site, agent: (typeof agents)[number], runId: string) =>
  Kernel.submit(agent, "go", { runId }).pipe(
    Effect.provide(
      Kernel.layerNoProvider.pipe(
        Layer.provide([
          SkillRegistry.layer(),
          ProtocolRegistry.layer(),
          MediaStore.layerMemory,
          Layer.succeed(RunStore.RunStore, site.store),
          Layer.succeed(Provider.Provider, { name: "none", stream: () => Stream.never })
        ]),
        Layer.provideMerge(Layer.succeed(RunStore.RunStore, site.store))
      )
    ),
    Effect.orDie
  )

const boot = (site: Site, name: string) => {
  const machine = site.world.boot(`${name}${site.world.machines.length}`)
  const events: Array<RunEvent.RunEvent> = []
  site.told.set(machine.name, events)
  const program = Effect.gen(function* () {
    const registry = yield* Layer.build(SkillRegistry.layer(...skills(site)))
    const protocols = yield* Layer.build(ProtocolRegistry.layer())
    const watched = watch(
      machine,
      site.witness,
      {
        store: faulty(site, machine),
        skills: Context.get(registry, SkillRegistry.SkillRegistry),
        protocols: Context.get(protocols, ProtocolRegistry.ProtocolRegistry)
      },
      undefined
    )
    const ground = yield* Layer.build(
      Layer.mergeAll(
        MediaStore.layerMemory,
        // In every other world a process can die between any two records.
        Layer.succeed(
          RunStore.RunStore,
          noteFailed(site, machine, site.seed % 2 === 0 ? oneByOne(watched.store) : watched.store)
        ),
        Layer.succeed(SkillRegistry.SkillRegistry, watched.skills),
        Layer.succeed(ProtocolRegistry.ProtocolRegistry, watched.protocols),
        Limits.layer({ skillTimeout: 5_000, emptyReplies: 50 }),
        Layer.succeed(Provider.Provider, provider(site)),
        Layer.succeed(Recorder.Recorder, { record: (event) => void events.push(event) })
      )
    )
    const kernel = yield* Layer.build(Layer.provide(site.kernel, Layer.succeedContext(ground)))
    const work = RunWorker.run({
      agents,
      workerId: machine.name,
      concurrency: 2,
      lease: "10 seconds",
      pollInterval: "500 millis",
      drain: "2 seconds",
      retry: Schedule.spaced("1 second"),
      retries: ({ status }) => status.type === "failed" && status.error.tag !== "BudgetExhaustedError",
      resume: ({ runId }) => ({ recover: verdicts(site, runId) }),
      onRun: ({ runId }) => Effect.sync(() => void site.left.set(`${machine.name} ${runId}`, site.facts.length))
    })
    return yield* Effect.provideContext(work, Context.merge(ground, kernel))
  }).pipe(Effect.scoped, Effect.provide(Logger.layer([])))
  return { machine, fiber: machine.start(program) }
}

/** What a person who can see everything says about calls in flight: nothing while their process may still come back. */
const verdicts = ({ facts, left, witness, world }: Site, root: string): { readonly [id: string]: Kernel.Recovery } => {
  const open = new Map<
    string,
    { readonly owner: string; readonly at: number; readonly runId: string; readonly step: number }
  >()
  const ended = new Set<string>()
  const steps = new Map<string, number>()
  for (const [at, fact] of facts.entries()) {
    if (fact.type === "ended") ended.add(keyOf(fact))
    // Of a launch that was not acknowledged nobody knows whether it was stored.
    const isKnown = fact.type === "stored"
    if (!isKnown && !(fact.type === "refused" && fact.tag === "StoreError")) continue
    if (!isBelow(fact.record.runId, root)) continue
    const { delta, events, runId } = fact.record
    for (const id of delta.launched ?? []) open.set(id, { owner: fact.machine, at, runId, step: steps.get(runId) ?? 0 })
    if (!isKnown) continue
    for (const event of events) {
      steps.set(runId, event.step)
      if (event.type === "tool_call_completed") open.delete(event.callId)
    }
    for (const { callId } of delta.resolved ?? []) open.delete(callId)
  }
  const replay: { [id: string]: Kernel.Recovery } = {}
  for (const [callId, { at, owner, runId, step }] of open) {
    // A task is a run of its own: it is taken up again in any case.
    if (facts.some((fact) => fact.type === "stored" && fact.record.runId === callId)) continue
    const place = { runId, step, callId }
    const isGone =
      world.machines.find(({ name }) => name === owner)?.status === "dead" || (left.get(`${owner} ${root}`) ?? 0) > at
    replay[callId] = ended.has(keyOf(place))
      ? { resolve: { output: [{ type: "text", text: "known" }] } }
      : isGone
        ? "retry"
        : "fail"
    if (replay[callId] === "retry") witness.facts.push({ type: "allowed", ...place })
  }
  return replay
}

const isBelow = (runId: string, root: string): boolean => runId === root || runId.startsWith(`${root}:`)

// ---------------------------------------------------------------- faults

/** A store that is sometimes not there, and sometimes only its answer is lost (F2). */
const faulty = ({ random, store }: Site, machine: Machine): RunStore.RunStoreShape => {
  const lost = new RunStore.StoreError({ operation: "commit", reason: "unavailable", detail: "gone for a moment" })
  const weak = <E>(write: Effect.Effect<void, E>): Effect.Effect<void, E | RunStore.StoreError> =>
    Effect.suspend(() => {
      if (machine.status === "dead" || !random.chance(0.01)) return write
      return random.chance(0.5) ? Effect.fail(lost) : Effect.andThen(write, Effect.fail(lost))
    })
  return {
    ...store,
    append: (records, state) => weak(store.append(records, state)),
    acquire: (runId, claim) => weak(store.acquire(runId, claim))
  }
}

/** Keeps the records of appends that failed: their process does not know which of them are stored. */
const noteFailed = ({ failed }: Site, machine: Machine, store: RunStore.RunStoreShape): RunStore.RunStoreShape => ({
  ...store,
  append: (records, state) =>
    Effect.tapError(store.append(records, state), () =>
      Effect.sync(() => {
        for (const { revision, runId } of records) failed.add(`${machine.name} ${runId}@${revision}`)
      })
    )
})

/** Skills that succeed, fail, die, hang, or give what nobody can tell (F6). */
const skills = ({ random }: Site): ReadonlyArray<Skill.AnySkill> =>
  (
    [
      ["pay", "write"],
      ["send", "idempotent"],
      ["look", "read"]
    ] as const
  ).map(([name, effects]) =>
    Skill.dynamic(name, {
      description: name,
      effects,
      inputSchema: { type: "object" },
      execute: () =>
        Effect.gen(function* () {
          yield* Effect.sleep(random.below(3_000))
          switch (random.below(12)) {
            case 0:
              return yield* Effect.fail("not today")
            case 1:
              return yield* Effect.die(new Error("a bug"))
            case 2:
              return yield* Effect.never
            case 3:
              return { amount: 1n }
            default:
              return `${name} done`
          }
        })
    })
  )

/** A model that answers, is cut off, fails or stalls (F4, F5, F7). */
const provider = ({ random, seed }: Site): Provider.ProviderShape => ({
  name: "scripted",
  stream: (request) =>
    Stream.unwrap(
      Effect.gen(function* () {
        yield* Effect.sleep(random.below(2_000))
        const said = request.messages.filter((message) => message.role === "assistant").length
        const own = chanceOf(seed * 31 + request.messages.length * 7 + JSON.stringify(request.messages).length)
        const fail = (reason: Provider.ProviderError["reason"]) =>
          Stream.fail(new Provider.ProviderError({ provider: "scripted", reason, detail: reason }))
        switch (random.below(14)) {
          case 0:
            return fail("disconnected")
          case 1:
            // The connection ends, and looks like an answer that was one.
            return Stream.fromIterable(callsOf(own, "cut"))
          case 2:
            return Stream.concat(Stream.fromIterable(callsOf(own, "cut")), fail("server_error"))
          case 3:
            return Stream.fromIterable([...callsOf(own, "cut"), { ...StreamPart.finish("length"), usage }])
        }
        if (request.tools.length === 0) return Stream.fromIterable(blocks(said, own))
        const parts = said < 1 + (seed % 3) ? callsOf(own, `s${said}`) : [StreamPart.text("done")]
        const reason = parts.some((part) => part.type === "tool-call") ? "tool-calls" : "stop"
        return Stream.fromIterable([...parts, { ...StreamPart.finish(reason), usage }])
      })
    )
})

const callsOf = (own: Random, id: string): ReadonlyArray<StreamPart.StreamPart> =>
  Array.from({ length: 1 + own.below(3) }, (_, index) => ({
    type: "tool-call",
    // Ids repeat now and then.
    id: own.chance(0.2) ? id : `${id}-${index}`,
    name: ["pay", "send", "look"][own.below(3)] ?? "pay",
    params: { index }
  }))

const plan = JSON.stringify({
  goal: "both",
  strategy: "parallel",
  tasks: [
    { id: "one", input: "first", parallel: true },
    { id: "two", input: "second", parallel: true },
    { id: "end", input: "third", parallel: false, depends_on: ["one", "two"] }
  ]
})

const blocks = (said: number, own: Random): ReadonlyArray<StreamPart.StreamPart> => {
  const text =
    said > 0
      ? `<block type="final">done</block>`
      : own.chance(0.5)
        ? `<block type="plan">${plan}</block>`
        : `<block type="command" name="pay">{"to":1}</block><block type="command" name="send">{"to":2}</block>`
  return [StreamPart.text(text), { ...StreamPart.finish("stop"), usage }]
}

// ---------------------------------------------------------------- checks

/**
 * No budget is passed by more than the calls under way: without parallel tasks, by the last one. What a call used
 * that was cut off is an estimate, which may be more than the model counts.
 */
const judgeBudget = (kept: ReadonlyArray<Kept>): ReadonlyArray<string> =>
  kept.flatMap(({ journal, runId, state }) => {
    if (state?.agent !== "frugal") return []
    const calls = journal.flatMap(tokensOf)
    const before = Num.sumAll(calls.slice(0, -1))
    return before < maxTokens ? [] : [`R-19: ${runId} had used ${before} tokens before its last call`]
  })

/** The tokens of each model call that a record counts. */
const tokensOf = ({ delta, events }: Kept["journal"][number]): ReadonlyArray<number> =>
  [delta.spent?.usage, ...events.map((event) => (event.type === "model_completed" ? event.usage : undefined))].flatMap(
    (usage) => (usage == null ? [] : [usage.inputTokens + usage.outputTokens])
  )

/**
 * How many events a process stored of a run without doing anything else with it in between, the last time it stored any.
 * A `read` call is entered while records are being stored, so it does not divide them.
 */
const together = (facts: ReadonlyArray<Fact>, machine: string, runId: string | undefined): number => {
  const of = (fact: Fact) => ("record" in fact ? fact.record.runId : fact.runId)
  const reads = new Set(
    facts.flatMap((fact) => (fact.type === "started" && fact.effects === "read" ? [keyOf(fact)] : []))
  )
  const own = facts.filter(
    (fact) =>
      "machine" in fact &&
      fact.machine === machine &&
      of(fact) === runId &&
      !((fact.type === "started" || fact.type === "ended" || fact.type === "cut") && reads.has(keyOf(fact)))
  )
  const isStored = (fact: Fact | undefined) => fact?.type === "stored"
  let count = 0
  for (let at = own.findLastIndex(isStored); isStored(own[at]); at--) {
    const fact = own[at]
    if (fact?.type === "stored") count += fact.record.events.length
  }
  return count
}

/**
 * The records of which nobody can tell whether their events are told: their append failed, whether or not it succeeded
 * when it was repeated, and another has the run next, or the same process that resumes it. It may have had it a moment
 * before their process looked, or after.
 */
const unsure = ({ facts, failed }: Site, machine: string): ReadonlySet<string> => {
  const found = new Set<string>()
  const last = new Map<string, { readonly revision: number; readonly again: ReadonlyArray<string> }>()
  for (const fact of facts) {
    if (fact.type !== "stored") continue
    const { revision, runId } = fact.record
    const line = `${runId}@${revision}`
    const before = last.get(runId)
    // Late beyond doubt: another has had the run already.
    if (before !== undefined && revision <= before.revision) continue
    if (fact.machine !== machine || fact.record.op === "resume") before?.again.forEach((own) => found.add(own))
    const isUnsure = fact.machine === machine && failed.has(`${machine} ${line}`)
    last.set(runId, { revision, again: isUnsure ? [...(before?.again ?? []), line] : [] })
  }
  return found
}

/** Whoever stored a record told its events, in order and without a gap. */
const judgeTold = (site: Site): ReadonlyArray<string> => {
  const { facts, told } = site
  const findings: Array<string> = []
  for (const [machine, events] of told) {
    const open = unsure(site, machine)
    const heard = events.flatMap((event) =>
      "revision" in event && !open.has(`${event.runId}@${event.revision}`)
        ? [`${event.runId}@${event.revision} ${event.type}`]
        : []
    )
    const last = new Map<string, number>()
    const stored = facts.flatMap((fact) => {
      if (fact.type !== "stored") return []
      const { events, revision, runId } = fact.record
      // Acknowledged when another had the run already: whoever is late tells nothing more.
      if (revision <= (last.get(runId) ?? 0)) return []
      last.set(runId, revision)
      if (open.has(`${runId}@${revision}`)) return []
      return fact.machine === machine ? events.map((event) => `${runId}@${revision} ${event.type}`) : []
    })
    for (const runId of new Set(stored.map((line) => line.split("@")[0]))) {
      const of = (lines: ReadonlyArray<string>) => lines.filter((line) => line.startsWith(`${runId}@`))
      const was = of(stored)
      // The end of a run is told again to whoever asks.
      const is = of(heard).filter(
        (line, index, lines) => !line.endsWith("run_completed") || (was.includes(line) && lines.indexOf(line) === index)
      )
      // Those of the last append may have died with its process.
      const least = was.length - together(facts, machine, runId)
      if (was.slice(0, is.length).join() !== is.join() || is.length < least) {
        findings.push(`R-23: ${machine} stored ${was.length} events of ${runId} and told ${is.length}`)
      }
    }
  }
  return findings
}

/**
 * Runs one case of a crash matrix: one process after the other until the run has ended, the first ones cut off as
 * planned.
 */

import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Agent, withOwnSkills } from "../../Agent.ts"
import type { Call, CallOutcome } from "../../Call.ts"
import * as Hooks from "../../Hooks.ts"
import * as Kernel from "../../Kernel.ts"
import { Limits } from "../../Limits.ts"
import * as MediaStore from "../../MediaStore.ts"
import { among, Middleware } from "../../Middleware.ts"
import * as ProtocolRegistry from "../../ProtocolRegistry.ts"
import type { Question, RunRecord, RunState } from "../../RunState.ts"
import { answerBy } from "../../RunDriver.ts"
import * as RunStore from "../../RunStore.ts"
import type { AnySkill, Effects } from "../../Skill.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import { treeOf } from "../../store-kit/StoredRuns.ts"
import { drive, inOrder, type Machine, type Order, World } from "./replay/virtualProcess.ts"
import { decide } from "./operator.ts"
import * as Verdict from "./reliabilityRules.ts"
import { type Cut, type Fact, type Interruption, keyOf, type Said, watch, type Witness } from "./watchedProcess.ts"

/** The run to test, and the decisions of the person who resumes it. */
export interface Subject<Output = unknown, S extends AnySkill<unknown> = AnySkill<unknown>, R = never> {
  readonly name?: string | undefined
  readonly agent: Agent<Output, S, R>
  readonly input: Kernel.Input
  readonly options?: Omit<Kernel.RunOptions, "runId"> | undefined
  /**
   * Skills, the provider, and everything else the run needs: protocols, hooks, policies, limits. Every process builds
   * the layer anew, including a `MockProvider`, which then starts its replies again. `Scenario.scripted` finds the next
   * reply from the conversation instead. Skills and providers may wait only on the Clock, since time is virtual.
   */
  readonly layer: Layer.Layer<SkillRegistry | R, unknown>
  /**
   * Returns the options for resuming a paused run, from its state and the waiting calls of the run and its tasks.
   * Default: approves everything.
   */
  readonly answer?: ((state: RunState, questions: ReadonlyArray<Question>) => Kernel.ResumeOptions) | undefined
  /**
   * Decides about a call that was in flight. Undefined leaves the decision to the kernel, as for a worker: `read` and
   * `idempotent` calls run again, a `write` call stops the run. The decision is checked, too: a `write` call must not
   * run again once its outcome is known. Default: the true outcome of a finished `write` call, `retry` for an
   * unfinished one, and undefined for all others.
   */
  readonly verdict?: ((call: Call, known: Known) => Kernel.Recovery | undefined) | undefined
}

/** The facts about a call in flight. */
export interface Known {
  /** The declared effects of its skill or protocol. */
  readonly effects: Effects
  readonly entered: boolean
  /** Its outcome, if it had finished. */
  readonly result: CallOutcome | undefined
}

/** The settings of a matrix. */
export interface Settings<E = never> {
  /**
   * Creates a place for a store, such as a file, and returns the layer with which each process opens it. A store inside
   * one process (`:memory:`) would be lost with it. Default: memory that all processes share.
   */
  readonly store?: Effect.Effect<Layer.Layer<RunStore.RunStore, E>, E, Scope.Scope> | undefined
  /** The kernel under test. */
  readonly kernel?:
    | Layer.Layer<
        Kernel.Kernel,
        never,
        SkillRegistry | ProtocolRegistry.ProtocolRegistry | MediaStore.MediaStore | RunStore.RunStore
      >
    | undefined
  /** The ways to cut off a process. Default: all four. */
  readonly ways?: ReadonlyArray<Cut["way"]> | undefined
  /** The ways to cut off a process a second time, at every append of every recovery. Default: none. */
  readonly again?: ReadonlyArray<Cut["way"]> | undefined
  /**
   * The places where the run is also interrupted: wherever one of its fibers starts to wait (`waits`), or after every
   * second operation of every fiber, a few hundred per turn (`operations`). Default: none.
   */
  readonly interrupts?: "waits" | "operations" | undefined
}

/** The ways a process can be cut off at a commit. */
export const ways: ReadonlyArray<Cut["way"]> = ["before", "unacknowledged", "after", "stalled"]

/** The facts about a run that reached its end. */
export interface Life {
  readonly kept: ReadonlyArray<Verdict.Kept>
  /** Number of appends tried by each process, in order. */
  readonly commits: ReadonlyArray<number>
  /** Number of steps of each process, in order: the moments at which it can be interrupted. */
  readonly steps: ReadonlyArray<number>
  /** Whether it reached the planned step of its interruption. */
  readonly interrupted: boolean
  readonly findings: ReadonlyArray<Verdict.Finding>
  readonly said: ReadonlyMap<string, Said>
  /** The outcome of every call, by its place. */
  readonly results: ReadonlyMap<string, CallOutcome>
}

const runId = "run"
/** More processes than a correct run needs. */
const patience = 24

/**
 * Creates an order in which a fiber yields after every second operation, for a case with many steps. The order is
 * consulted twice before a fiber moves, so yielding at every second query would stop it forever.
 */
export const everyOther = (): Order => {
  let asked = 0
  return { pick: () => 0, gives: () => ++asked % 3 === 0 }
}

/** Runs a case to its end. `before` is the undisturbed case to compare with. */
export const live = Effect.fnUntraced(function* <Output, S extends AnySkill<unknown>, R, E>(
  subject: Subject<Output, S, R>,
  settings: Settings<E>,
  before: Life | undefined,
  cuts: ReadonlyArray<Cut | Interruption>,
  order: Order = inOrder
): Effect.fn.Return<Life, E | RunStore.StoreError, Scope.Scope> {
  const world = new World({ order })
  const facts: Array<Fact> = []
  const answers = new Map<string, Said>()
  for (const [key, said] of before?.said ?? []) answers.set(key, { ...said, failed: 0 })
  const witness: Witness = { facts, said: answers }
  const place = yield* settings.store ?? memory
  const operator = yield* opened(place)
  const findings: Array<Verdict.Finding> = []
  const processes: Array<Process> = []
  const steps: Array<number> = []
  const sleepers = () =>
    new Set(processes.flatMap(({ machine }) => (machine.status === "stopped" ? [machine.name] : [])))
  let told = false
  let interrupted = false

  while (true) {
    const state = Option.getOrUndefined(yield* operator.load(runId))
    if (state?.status.type === "completed") break
    if (processes.length === patience) {
      const detail = `still ${state?.status.type ?? "unknown"} after ${patience} processes: ${endOf(processes.at(-1))}`
      findings.push({ rule: "nothing_lost", detail })
      break
    }
    const own = processes.findLast((process) => process.own() !== undefined)?.own()
    const how =
      state === undefined ? undefined : yield* decide(subject, operator, state, facts, before, sleepers(), own)
    told ||= how?.told ?? false
    findings.push(...(how?.findings ?? []))
    yield* expireLeases(operator)
    if (state !== undefined && how?.options.answers?.length === 0) yield* passTime(world, operator, state)
    const store = yield* opened(place)
    const number = processes.length + 1
    const machine = world.boot(`process ${number}`)
    const cut = cuts.find((cut) => cut.process === number)
    const interruption = cut?.way === "interrupted" ? cut : undefined
    const killed = cut?.way === "interrupted" ? undefined : cut
    if (interruption !== undefined) machine.fibers = new Set()
    const process = boot(subject, settings, machine, witness, store, how?.options, killed)
    processes.push(process)
    const began = world.moves
    const ending = yield* drive(world, () => {
      if (!interrupted && interruption !== undefined && world.moves - began === interruption.step - 1) {
        interrupted = true
        process.interrupt()
      }
      return process.exit() !== undefined || machine.status !== "running"
    })
    steps.push(world.moves - began)
    if (interruption !== undefined && ending === "done") findings.push(...(yield* leftBy(machine, facts)))
    if (process.exit() === undefined && machine.status === "running") {
      findings.push({
        rule: "nothing_lost",
        detail: `${machine.name} ${ending === "idle" ? "waits for ever" : "never ends"}`
      })
      break
    }
  }

  for (const { exit, machine } of processes) {
    if (machine.status !== "stopped") continue
    machine.wake()
    const ending = yield* drive(world, () => exit() !== undefined)
    if (ending !== "done") findings.push({ rule: "fenced", detail: `${machine.name} woke and never ends` })
  }

  const kept = yield* keep(operator)
  findings.push(...Verdict.judgeFacts(facts), ...Verdict.judgeKept(facts, kept))
  // `onToolCallCompleted` does not see a call whose outcome was given, so its changes are missing.
  const same = !(told && processes.some((process) => process.own()?.hooks.onToolCallCompleted !== undefined))
  if (before !== undefined && findings.length === 0 && same) findings.push(...Verdict.judgeSame(before.kept, kept))
  return {
    kept,
    commits: processes.map((process) => process.commits()),
    steps,
    interrupted,
    findings,
    said: answers,
    results: new Map(kept.flatMap((run) => run.journal.flatMap(resultsOf)))
  }
}, Effect.scoped)

/**
 * Lets the time pass until a run that waits for nobody continues, such as a program that sleeps. A part of it that has
 * its answer continues at once.
 */
const passTime = Effect.fnUntraced(function* (
  world: World,
  store: RunStore.RunStoreShape,
  state: RunState
): Effect.fn.Return<void, RunStore.StoreError> {
  if ((yield* treeOf(store, state)).some(isAnswered)) return
  const head = Option.getOrUndefined(yield* store.head(runId))
  world.now = Math.max(world.now, (head && answerBy(head)) ?? 0)
})

const isAnswered = ({ questions, status }: RunState): boolean =>
  status.type === "paused" && questions.length > 0 && questions.every(({ answer }) => answer !== undefined)

/** Ends the leases of processes that were cut off, as time would: the next process starts much later. */
export const expireLeases = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape
): Effect.fn.Return<void, RunStore.StoreError> {
  for (const { lease, runId } of yield* store.list()) {
    if (lease?.isLive === true) yield* Effect.ignore(store.acquire(runId, { workerId: lease.workerId, lease: 0 }))
  }
})

/** Finds what an interrupted process must not leave behind: fibers, and skills that started and never ended. */
const leftBy = Effect.fnUntraced(function* (
  machine: Machine,
  facts: ReadonlyArray<Fact>
): Effect.fn.Return<ReadonlyArray<Verdict.Finding>> {
  yield* settled(machine.world)
  const fibers = [...(machine.fibers ?? [])].filter((fiber) => fiber.pollUnsafe() === undefined).length
  const count = (...types: ReadonlyArray<Fact["type"]>) =>
    facts.filter((fact) => types.includes(fact.type) && "machine" in fact && fact.machine === machine.name).length
  const open = count("started") - count("ended", "cut")
  return [
    ...(fibers === 0 ? [] : [`${machine.name} was interrupted and left ${fibers} fibers`]),
    ...(open === 0 ? [] : [`${machine.name} was interrupted and ${open} of its skills never ended`])
  ].map((detail) => ({ rule: "nothing_left", detail }))
})

/** Runs everything that is due now. */
const settled = Effect.fnUntraced(function* (world: World): Effect.fn.Return<void> {
  const now = world.now
  yield* drive(world, () => world.now > now, 10_000)
})

const memory = Effect.map(RunStore.makeMemory, (store) => Layer.succeed(RunStore.RunStore, store))

const opened = <E>(place: Layer.Layer<RunStore.RunStore, E>) =>
  Effect.map(Layer.build(place), (context) => Context.get(context, RunStore.RunStore))

/** Returns all runs in a store. */
export const keep = Effect.fnUntraced(function* (store: RunStore.RunStoreShape) {
  const heads = yield* store.list()
  const kept = yield* Effect.forEach(heads, ({ runId }) =>
    Effect.map(
      Effect.zip(Stream.runCollect(store.read(runId)), store.load(runId)),
      ([journal, state]): Verdict.Kept => ({ runId, journal, state: Option.getOrUndefined(state) })
    )
  )
  return kept.toSorted((a, b) => (a.runId < b.runId ? -1 : 1))
})

const resultsOf = (record: RunRecord): ReadonlyArray<readonly [string, CallOutcome]> =>
  record.events.flatMap((event) =>
    event.type === "tool_call_completed"
      ? [[keyOf({ runId: event.runId, step: event.step, callId: event.callId }), event.result] as const]
      : []
  )

// ---------------------------------------------------------------- processes

interface Process {
  readonly machine: Machine
  readonly exit: () => Exit.Exit<unknown, unknown> | undefined
  readonly interrupt: () => void
  readonly commits: () => number
  /** The parts of the subject that this process has built. */
  readonly own: () => Own | undefined
}

/** The parts of the subject that determine the effects of a call. */
export interface Own {
  readonly hooks: Hooks.Hooks
  readonly protocols: ProtocolRegistry.ProtocolRegistry["Service"]
  readonly skills: SkillRegistry["Service"]
}

/** Starts a process that begins the run, or resumes it as planned. */
const boot = <Output, S extends AnySkill<unknown>, R, E>(
  subject: Subject<Output, S, R>,
  settings: Settings<E>,
  machine: Machine,
  witness: Witness,
  store: RunStore.RunStoreShape,
  how: Kernel.ResumeOptions | undefined,
  cut: Cut | undefined
): Process => {
  let commits = () => 0
  let known: Own | undefined
  const program = Effect.gen(function* () {
    const own = yield* Layer.build(subject.layer)
    const parts = Context.merge(yield* Layer.build(defaults), own)
    // Skill values of agents are watched like those of the registry.
    const skills = withOwnSkills<R | SkillRegistry>(Context.get(parts, SkillRegistry), subject.agent, parts)
    const protocols = Context.get(parts, ProtocolRegistry.ProtocolRegistry)
    known = { hooks: Hooks.among(parts), protocols, skills }
    const watched = watch(machine, witness, { store, skills, protocols }, cut)
    commits = watched.commits
    const ground = parts.pipe(
      Context.add(RunStore.RunStore, watched.store),
      Context.add(MediaStore.MediaStore, outside(machine, Context.get(parts, MediaStore.MediaStore))),
      Context.add(SkillRegistry, watched.skills),
      Context.add(ProtocolRegistry.ProtocolRegistry, watched.protocols),
      Context.add(Middleware, [...among(parts), watched.middleware])
    )
    const built = yield* Layer.build(
      Layer.provide(settings.kernel ?? Kernel.layerNoProvider, Layer.succeedContext(ground))
    )
    const kernel = Context.get(built, Kernel.Kernel)
    const work =
      how === undefined
        ? kernel.run(subject.agent, subject.input, { ...subject.options, runId })
        : kernel.resume(subject.agent, runId, { workerId: machine.name, ...how })
    return yield* Effect.provideContext(work, ground)
  }).pipe(Effect.scoped, Effect.provide(Logger.layer([])))
  const fiber = machine.start(program)
  return {
    machine,
    exit: () => fiber.pollUnsafe(),
    interrupt: () => fiber.interruptUnsafe(),
    commits: () => commits(),
    own: () => known
  }
}

/** Returns the media store for a process. Ids are computed in real time, so virtual time waits for them. */
const outside = (machine: Machine, store: MediaStore.MediaStoreShape): MediaStore.MediaStoreShape => {
  const ask = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.flatMap(Limits, (limits) => machine.ask(Effect.provideService(effect, Limits, limits)))
  return {
    put: (media) => ask(store.put(media)),
    get: (id) => ask(store.get(id)),
    bytes: (id) => ask(store.bytes(id)),
    content: (id) => ask(store.content(id)),
    admit: (parts) => ask(store.admit(parts)),
    list: ask(store.list),
    size: ask(store.size),
    run: (rootRunId, origins) => Effect.map(store.run(rootRunId, origins), (own) => outside(machine, own)),
    release: (rootRunIds) => ask(store.release(rootRunIds))
  }
}

const defaults = Layer.mergeAll(ProtocolRegistry.layer(), MediaStore.layerMemory)

const endOf = (process: Process | undefined): string => {
  const exit = process?.exit()
  if (exit === undefined) return "the last one was cut off"
  return exit._tag === "Success" ? "the last one succeeded" : (Cause.pretty(exit.cause).split("\n")[0] ?? "")
}

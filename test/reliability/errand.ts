/**
 * The runs that real processes are killed in: what each of them does, and what runs it.
 *
 * A model answers by what was said before, a skill by what it is given, so every
 * process sees the same world and an undisturbed run is one to compare with.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { Agent, Kernel, MediaStore, Middleware, Policy, ProtocolRegistry, Provider } from "kernai"
import { RunStore, Skill, SkillRegistry, StreamPart } from "kernai"
import * as fs from "node:fs"
import { join } from "node:path"
import { inFlight } from "../../src/testing/internal/operator.ts"
import { type Fact, keyOf, watch, type Witness } from "../../src/testing/internal/watchedProcess.ts"
import * as Ledger from "./ledger.ts"

// ---------------------------------------------------------------- agents

const model = { id: "scripted", capabilities: ["text"] as const }

/** One runs call by call, one three at once, one a workflow of tasks. */
export const agents = [
  Agent.make({ name: "solo", instructions: "", model, skills: "all", dialect: "tools" }),
  Agent.make({ name: "several", instructions: "", model, skills: "all", dialect: "tools", concurrency: 3 }),
  Agent.make({ name: "planner", instructions: "", model, skills: "all", taskConcurrency: 2 })
] as const

const member = (id: string, skills: ReadonlyArray<string>, below: ReadonlyArray<Agent.Agent> = []) =>
  Agent.make({
    name: id,
    instructions: "",
    model: { ...model, id },
    skills,
    agents: below,
    dialect: "tools",
    concurrency: 3
  })

/** A support desk: three specialists, one of which asks a clerk, whose payments a person confirms. */
export const desk = member(
  "desk",
  [],
  [
    member("billing", ["pay", "send"]),
    member("refunds", ["file"], [member("clerk", ["pay", "send"])]),
    member("shipping", ["look", "file"])
  ]
)

/** The agent of a run: the number at the end of its id decides, and a desk's runs begin with its name. */
export const agentOf = (runId: string) =>
  runId.startsWith("desk") ? desk : (agents[Number(/\d+$/.exec(runId)?.[0] ?? 0) % agents.length] ?? agents[0])

/** Who asks whom, and what for, turn by turn. */
const deskCalls: { readonly [model: string]: ReadonlyArray<ReadonlyArray<string>> } = {
  desk: [["billing", "refunds", "shipping"], ["shipping"]],
  billing: [["pay", "send"]],
  refunds: [["clerk"], ["file"]],
  clerk: [["pay"], ["send"]],
  shipping: [["look", "file"]]
}

/** Calls of the clerk that cost money wait for a person. */
const confirms = Policy.layer(({ agent, name }) =>
  Effect.succeed(agent === "clerk" && name === "pay" ? Policy.confirm("it costs") : Policy.allowed)
)

/** Runs or resumes a run to its end, and answers what it asks on the way. */
export const approving = <A, E extends { readonly _tag: string }, R>(
  runId: string,
  first: Effect.Effect<A, E, R>,
  resume: Effect.Effect<A, E, R>
) => {
  const answered = Effect.flatMap(Kernel.questions(runId), (open) =>
    Kernel.answer(
      runId,
      open.map(({ callId }) => ({ callId, approved: true, by: "operator" }))
    )
  )
  type Ended = Effect.Effect<A, E | Kernel.AnswerError | Kernel.QuestionsError, R | RunStore.RunStore>
  const toItsEnd = (part: Effect.Effect<A, E, R>): Ended =>
    Effect.catchIf(
      part,
      ({ _tag }) => _tag === "RunPaused",
      () =>
        Effect.andThen(
          answered,
          Effect.suspend(() => toItsEnd(resume))
        )
    )
  return toItsEnd(first)
}

const calls: ReadonlyArray<ReadonlyArray<string>> = [
  ["pay", "send"],
  ["look", "pay", "file"],
  ["pay"],
  ["send", "file"]
]

const plan = JSON.stringify({
  goal: "both",
  strategy: "parallel",
  tasks: [
    { id: "one", input: "first", parallel: true },
    { id: "two", input: "second", parallel: true },
    { id: "end", input: "third", parallel: false, depends_on: ["one", "two"] }
  ]
})

const provider: Provider.ProviderShape = {
  name: "scripted",
  stream: (request) =>
    Stream.suspend(() => {
      const said = request.messages.filter((message) => message.role === "assistant").length
      const wanted = deskCalls[request.model.id]
      if (wanted !== undefined) return Stream.fromArray(tools(said, wanted))
      const isPlanner = request.tools === undefined || request.tools.length === 0
      return Stream.fromArray(isPlanner ? blocks(said, request) : tools(said))
    })
}

const tools = (said: number, script = calls): ReadonlyArray<StreamPart.StreamPart> => {
  const wanted = script[said]
  if (wanted === undefined) return [StreamPart.text("done"), StreamPart.finish()]
  // Ids repeat from turn to turn.
  const parts = wanted.map((name, index) => ({
    type: "tool-call" as const,
    id: `call-${index}`,
    name,
    params: { to: `${said}.${index}`, input: `${said}.${index}` }
  }))
  return [...parts, StreamPart.finish("tool-calls")]
}

const blocks = (said: number, { messages }: Provider.Request): ReadonlyArray<StreamPart.StreamPart> => {
  const asked = JSON.stringify(messages.find((message) => message.role === "user")?.content ?? "")
  const isTask = !asked.includes("go")
  const text =
    said > 0
      ? `<block type="final">done</block>`
      : isTask
        ? `<block type="command" name="pay">{"to":1}</block><block type="command" name="send">{"to":2}</block>`
        : `<block type="plan">${plan}</block>`
  return [StreamPart.text(text), StreamPart.finish()]
}

const outputOf = (name: string, input: unknown) => `${name} ${JSON.stringify(input)}`

const skill = (name: string, effects: Skill.Effects, takes: number) =>
  Skill.dynamic(name, {
    description: name,
    effects,
    inputSchema: { type: "object" },
    execute: (input) =>
      takes === 0 ? Effect.succeed(outputOf(name, input)) : Effect.as(Effect.sleep(takes), outputOf(name, input))
  })

const skills = (takes: number) => [
  skill("pay", "write", takes),
  skill("look", "read", 0),
  skill("send", "idempotent", 2 * takes),
  skill("file", "write", takes)
]

// ---------------------------------------------------------------- a process

/** A process under watch, and what it knows of the others. */
export interface Site {
  readonly machine: string
  /** The folder of all ledgers. */
  readonly folder: string
  /** Milliseconds a skill takes. */
  readonly takes: number
  /** Says nothing about calls in flight: where others are at work, what was true of a call may be about its turn only. */
  readonly isSilent?: boolean
  /** It stops itself between the launch of the first `write` call of each run and its entry, once for all processes. */
  readonly freezes?: boolean
  readonly kernel?: typeof Kernel.layerNoProvider
}

/** Stops the process of a first `write` call right before the call is entered, until another process wakes it. */
const freezing = ({ folder, machine }: Site): Middleware.Middleware => ({
  callTool: (run, next) =>
    Effect.suspend(() => {
      if (run.call.name === "pay" && isFirst(join(folder, `${encodeURIComponent(run.rootRunId)}.frozen`))) {
        fs.writeSync(1, `frozen ${machine}\n`)
        process.kill(process.pid, "SIGSTOP")
      }
      return next(run)
    })
})

/** Whether this process is the first to make a file. */
const isFirst = (file: string): boolean => {
  try {
    fs.closeSync(fs.openSync(file, "wx"))
    return true
  } catch {
    return false
  }
}

/** A model that answers by what was said before needs nobody who remembers its answers: a process may live long. */
const forgetful: Witness["said"] = { get: () => undefined, set: () => {} }

/** A kernel on the store of the context, under watch. Whoever resumes tells the truth about calls in flight. */
export const kernel = (site: Site) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const store = yield* RunStore.RunStore
      const registry = yield* SkillRegistry.SkillRegistry
      const protocols = yield* ProtocolRegistry.ProtocolRegistry
      const witness: Witness = { said: forgetful, facts: Ledger.open(site.folder, site.machine) }
      const self = {
        name: site.machine,
        kill: () => {},
        stop: () => {},
        ask: <A, E>(effect: Effect.Effect<A, E>) => effect
      }
      const watched = watch(self, witness, { store, skills: registry, protocols }, undefined)
      const ground = Layer.mergeAll(
        MediaStore.layerMemory,
        Layer.succeed(RunStore.RunStore, watched.store),
        Layer.succeed(SkillRegistry.SkillRegistry, watched.skills),
        Layer.succeed(ProtocolRegistry.ProtocolRegistry, watched.protocols),
        Layer.succeed(Provider.Provider, provider),
        Layer.succeed(Middleware.Middleware, [watched.middleware, ...(site.freezes === true ? [freezing(site)] : [])]),
        confirms
      )
      const honest = Layer.effect(
        Kernel.Kernel,
        Effect.map(Kernel.Kernel, (kernel): Kernel.KernelShape => ({
          ...kernel,
          resume: (agent, runId, options) =>
            Effect.flatMap(
              site.isSilent === true ? Effect.succeed({}) : verdicts(site, store, witness, runId),
              (replay) => kernel.resume(agent, runId, { ...options, workerId: site.machine, recover: replay })
            )
        }))
      )
      return honest.pipe(Layer.provide(site.kernel ?? Kernel.layerNoProvider), Layer.provide(ground))
    })
  ).pipe(Layer.provide([SkillRegistry.layer(...skills(site.takes)), ProtocolRegistry.layer()]), Layer.orDie)

/** The kernel of somebody who watches nothing: for an undisturbed run, and to submit one. */
export const plain = Kernel.layerNoProvider.pipe(
  Layer.provide([
    SkillRegistry.layer(...skills(0)),
    ProtocolRegistry.layer(),
    MediaStore.layerMemory,
    Layer.succeed(Provider.Provider, provider),
    confirms
  ]),
  Layer.orDie
)

/** What a person who can see every ledger says about calls in flight. */
const verdicts = Effect.fnUntraced(function* (
  site: Site,
  store: RunStore.RunStoreShape,
  witness: Witness,
  runId: string
) {
  const replay: { [callId: string]: Kernel.Recovery } = {}
  const state = yield* store.load(runId)
  if (Option.isNone(state)) return replay
  const open = yield* inFlight(store, state.value)
  if (open.length === 0) return replay
  // Who is dead is looked at first: what one did before it died is in its ledger then.
  const gone = Ledger.gone(site.folder)
  const facts = [...Ledger.read(site.folder).values()].flat()
  for (const { call, place } of open) {
    const is = (type: Fact["type"]) =>
      facts.some((fact) => fact.type === type && "callId" in fact && keyOf(fact) === keyOf(place))
    const journal = yield* Stream.runCollect(store.read(place.runId))
    const launch = journal.findLast((record) => record.delta.launched?.includes(place.callId) === true)
    // Whoever launched it and stopped before it began must not begin it when it wakes.
    const isStopped = site.freezes === true && !is("started")
    const isOver = is("cut") || isStopped || (launch !== undefined && gone.has(Ledger.machineOf(launch)))
    if (!is("ended") && isOver) {
      witness.facts.push({ type: "allowed", ...place })
      replay[place.callId] = "retry"
    } else {
      // It is done, or whoever launched it will do it.
      replay[place.callId] = {
        resolve: { output: [{ type: "text", text: outputOf(call.name ?? "", call.input) }] }
      }
    }
  }
  return replay
})

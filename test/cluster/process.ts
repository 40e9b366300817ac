/**
 * A runner as a process, to be stopped in any way.
 *
 * Its one argument is a `Place` as JSON. It prints `ready` when it is part of the cluster, and SIGTERM ends it. Each call
 * is noted in a ledger before it does anything; a resume learns from it which calls in flight were entered.
 */
import { Cause, Effect, Exit, Layer, Logger, Redacted, Schedule, Stream } from "effect"
import {
  Agent,
  Content,
  Kernel,
  MediaStore,
  Policy,
  ProtocolRegistry,
  Provider,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { StreamPart } from "kernai"
import { ClusterKernel, ClusterNode } from "kernai/cluster"
import { PgRunStore } from "kernai/sql"
import * as fs from "node:fs"

/** Where a runner listens, and what it runs. */
export interface Place {
  readonly url: string
  /** By which others reach it. */
  readonly host: string
  readonly port: number
  /** Where it listens. */
  readonly listenPort: number
  /** The file of all calls that were entered. */
  readonly ledger: string
  /** Milliseconds until another runner has the runs of one that died. */
  readonly lockExpiration: number
  /** Milliseconds that the model, and a call, take. */
  readonly model: number
  readonly call: number
  /** Turns with a call, before the answer. */
  readonly turns: number
  /** The names of its agents. Default: the one of `agent`. */
  readonly agents?: ReadonlyArray<string>
  /** Milliseconds between three attempts of a run that crashed. Default: those of a driver. */
  readonly retryEvery?: number
}

export const agentOf = (name: string) =>
  Agent.make({ name, instructions: "", model: "scripted", skills: "all", dialect: "tools", maxSteps: 100 })

export const agent = agentOf("clerk")

/** A model that pays for some turns, then answers. It streams its answer word by word when the input asks for words. */
export const provider = ({ model, turns }: Pick<Place, "model" | "turns">): Provider.ProviderShape => ({
  name: "scripted",
  stream: ({ messages }) => {
    const said = messages.filter(({ role }) => role === "assistant").length
    const words = /words (\d+)/.exec(JSON.stringify(messages[0]?.content ?? ""))?.[1]
    if (words !== undefined) return spokenWords(Number(words))
    const parts: ReadonlyArray<StreamPart.StreamPart> =
      said < turns
        ? [
            { type: "tool-call", id: `call-${said}`, name: "pay", params: { turn: said } },
            StreamPart.finish("tool-calls")
          ]
        : [StreamPart.text("done"), StreamPart.finish()]
    return Stream.unwrap(Effect.as(Effect.sleep(model), Stream.fromArray(parts)))
  }
})

/** Each word is the time at which it was sent. */
const spokenWords = (count: number) =>
  Stream.concat(
    Stream.range(1, count).pipe(
      Stream.mapEffect(() =>
        Effect.delay(
          Effect.sync(() => StreamPart.text(`${performance.timeOrigin + performance.now()} `)),
          20
        )
      )
    ),
    Stream.make(StreamPart.finish())
  )

const line = (runId: string, callId: string) => `${runId} ${callId}\n`

/** Pays. A run whose id begins with `poison` kills its process instead. */
const pay = ({ call, ledger }: Place) =>
  Skill.dynamic("pay", {
    description: "pays",
    effects: "write",
    inputSchema: { type: "object" },
    execute: (_, { callId, runId }) =>
      Effect.suspend(() => {
        if (runId.startsWith("poison")) process.kill(process.pid, "SIGKILL")
        fs.appendFileSync(ledger, line(runId, callId))
        return Effect.as(Effect.sleep(call), "paid")
      })
  })

/** What a process of the cluster has: a kernel on its own connections. */
export const kernelAt = (url: string, skill: Skill.AnySkill, model: Provider.ProviderShape) =>
  Kernel.layer.pipe(
    Layer.provide([
      SkillRegistry.layer(skill),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      Layer.succeed(Provider.Provider, model)
    ]),
    Layer.provideMerge(PgRunStore.layer({ url: Redacted.make(url) })),
    Layer.orDie
  )

/** Calls that are in the ledger took place; the others were never entered. */
const verdicts = (ledger: string) => (head: RunStore.RunHead) =>
  Effect.map(RunStore.inFlight(head.runId), (calls) => {
    const entered = fs.readFileSync(ledger, "utf8")
    const verdict = (runId: string, callId: string): Kernel.Recovery =>
      entered.includes(line(runId, callId)) ? { resolve: { output: [Content.text("paid")] } } : "retry"
    return { recover: Object.fromEntries(calls.map(({ callId, runId }) => [callId, verdict(runId, callId)])) }
  })

/** A person confirms the calls of runs whose id begins with `ask`. */
const confirms = Policy.layer(({ rootRunId }) =>
  Effect.succeed(rootRunId.startsWith("ask") ? Policy.confirm("it costs") : Policy.allowed)
)

const runner = (place: Place) =>
  ClusterKernel.layer({
    agents: (place.agents ?? [agent.name]).map(agentOf),
    ...(place.retryEvery === undefined
      ? {}
      : { retry: Schedule.upTo(Schedule.spaced(place.retryEvery), { times: 3 }) }),
    resume: verdicts(place.ledger),
    onRun: () => Effect.void,
    pollInterval: 2 * place.lockExpiration,
    drain: place.lockExpiration / 3
  }).pipe(
    Layer.provide([
      Layer.provide(kernelAt(place.url, pay(place), provider(place)), confirms),
      ClusterNode.layer({
        host: place.host,
        port: place.port,
        listenPort: place.listenPort,
        lockExpiration: place.lockExpiration,
        joinDelay: 500
      })
    ]),
    Layer.provide(PgRunStore.layerSqlClient({ url: Redacted.make(place.url) }))
  )

if (import.meta.filename === process.argv[1]) {
  const place: Place = JSON.parse(process.argv[2] ?? "{}")
  const ready = Effect.sync(() => process.stdout.write("ready\n"))
  const main = Layer.launch(Layer.provideMerge(Layer.effectDiscard(ready), runner(place)))
  const fiber = Effect.runFork(Effect.provide(main, Logger.layer([])))
  process.once("SIGTERM", () => fiber.interruptUnsafe())
  // The process that started it is gone, or asks for its memory.
  process.stdin
    .on("close", () => process.exit(1))
    .on("data", () => {
      globalThis.gc?.()
      process.stdout.write(`heap ${process.memoryUsage().heapUsed}\n`)
    })
  fiber.addObserver((exit) => {
    const isStopped = Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)
    if (!isStopped) process.stderr.write(Cause.pretty(exit.cause))
    process.exit(isStopped ? 0 : 1)
  })
}

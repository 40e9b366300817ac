/** A worker on SQLite and PostgreSQL, while there is nothing to do. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Option, Redacted, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, MediaStore, Policy, ProtocolRegistry, RunStore, RunWorker, Skill, SkillRegistry } from "kernai"
import { PgRunStore, SqlRunStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { folder } from "../support/folder.ts"
import * as Postgres from "../support/postgres.ts"
import { tracer } from "../support/tracer.ts"
import { until } from "../support/until.ts"

const agent = Agent.make({ instructions: "", model: "m", skills: "all" })

const pay = Skill.dynamic("pay", {
  description: "pays",
  inputSchema: { type: "object" },
  execute: () => Effect.succeed("paid")
})

/** A process on a store, whose calls wait 100 seconds for a person. */
const process = (store: RunStore.RunStoreShape) =>
  Kernel.layer.pipe(
    Layer.provide([
      SkillRegistry.layer(pay),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      MockProvider.layer(command("pay"), final("done")),
      Policy.layer(() => Effect.succeed(Policy.confirm("it costs", { within: "100 seconds" })))
    ]),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
  )

type Stores = Layer.Layer<RunStore.RunStore, RunStore.StoreError>

const opened = (stores: Stores) =>
  Effect.gen(function* () {
    return Context.get(yield* Layer.buildWithScope(Layer.fresh(stores), yield* Scope.Scope), RunStore.RunStore)
  })

/** A worker on a store, with its statements, and a second process on the same database. */
const working = (stores: Stores) =>
  Effect.gen(function* () {
    const { layer, spans } = tracer()
    const mine = yield* opened(stores)
    const lists = { begun: 0, ended: 0 }
    const watched: RunStore.RunStoreShape = {
      ...mine,
      list: (filter) => {
        lists.begun++
        return Effect.ensuring(
          mine.list(filter),
          Effect.sync(() => lists.ended++)
        )
      }
    }
    const worker = Effect.provide(RunWorker.run({ agents: [agent] }), Layer.merge(process(watched), layer))
    yield* Effect.forkScoped(worker, { startImmediately: true })
    const theirs = yield* opened(stores)
    /** Lets time pass, and waits for the polls that it begins. */
    const pass = (time: "5 seconds" | "30 seconds") =>
      Effect.andThen(TestClock.adjust(time), TestClock.withLive(until(() => lists.ended === lists.begun)))
    return {
      lists,
      pass,
      statements: () => spans.filter(({ attributes }) => attributes.has("db.system.name")).length,
      theirs
    }
  })

type Working = Effect.Success<ReturnType<typeof working>>

/** Lets time pass until two polls are left out. */
const rested = ({ lists, pass }: Working) =>
  Effect.gen(function* () {
    for (let left = 2; left > 0;) {
      const { begun } = lists
      yield* pass("5 seconds")
      left = lists.begun === begun ? left - 1 : 2
    }
  })

/** Waits until something holds, a virtual millisecond for each look. */
const soon = <E>(holds: Effect.Effect<boolean, E>) =>
  Effect.repeat(
    Effect.andThen(TestClock.withLive(Effect.sleep("5 millis")), Effect.andThen(TestClock.adjust(1), holds)),
    { until: (done) => done }
  )

const isWaiting = ({ theirs }: Working) =>
  Effect.map(theirs.head("r"), (head) => Option.getOrUndefined(head)?.status.type === "waiting")

const suite = (name: string, stores: Effect.Effect<Stores, unknown, Scope.Scope>) =>
  describe(`an idle worker on ${name}`, () => {
    it.effect("sends no statement, not for a run that waits either", () =>
      Effect.gen(function* () {
        const worker = yield* working(yield* stores)
        const { pass, statements, theirs } = worker
        yield* rested(worker)
        const empty = statements()
        assert.isAbove(empty, 0)
        yield* pass("30 seconds")
        assert.strictEqual(statements(), empty)
        yield* Effect.provide(Kernel.submit(agent, "go", { runId: "r" }), process(theirs))
        yield* soon(isWaiting(worker))
        yield* rested(worker)
        const waiting = statements()
        yield* pass("30 seconds")
        assert.strictEqual(statements(), waiting)
      })
    )

    it.effect("hears the question of another process, and declines it at its deadline", () =>
      Effect.gen(function* () {
        const worker = yield* working(yield* stores)
        const { lists, pass, theirs } = worker
        yield* rested(worker)
        const { begun } = lists
        yield* Effect.forkScoped(Effect.provide(Kernel.run(agent, "go", { runId: "r" }), process(theirs)))
        yield* soon(isWaiting(worker))
        // A change makes the worker poll, long before its next check.
        yield* soon(Effect.sync(() => lists.begun > begun))
        yield* rested(worker)
        const asked = Effect.map(theirs.load("r"), (state) => Option.getOrThrow(state).questions[0])
        const { answerBy = 0 } = (yield* asked) ?? {}
        while ((yield* Clock.currentTimeMillis) < answerBy) yield* pass("5 seconds")
        yield* soon(Effect.map(asked, (question) => question?.callId === "r:t2.0"))
        // It was declined on time, so the model asked again then.
        assert.isBelow(((yield* asked)?.answerBy ?? 0) - answerBy, 110_000)
      })
    )
  })

suite(
  "SQLite",
  Effect.map(folder, (path) => SqlRunStore.layerSqlite(`${path}/runs.db`))
)

describe.skipIf(!Postgres.available)("with a server", () => {
  suite(
    "PostgreSQL",
    Effect.map(Postgres.database, ({ url }) => PgRunStore.layer({ url: Redacted.make(url), maxConnections: 4 }))
  )
})

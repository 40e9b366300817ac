import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Stream } from "effect"
import { RunState, RunStore } from "kernai"
import { suite } from "./support/runStore.ts"

describe("RunStore.layerMemory", () => {
  const context = Effect.runSync(Effect.scoped(Layer.build(RunStore.layerMemory)))
  suite(Effect.succeed(Context.get(context, RunStore.RunStore)))

  it.effect("gives a record back as it was, whatever it says beside its event", () =>
    Effect.gen(function* () {
      const store = Context.get(context, RunStore.RunStore)
      const scope = { runId: "r", rootRunId: "r", step: 0, depth: 0, taskId: undefined }
      const begin: RunState.RunRecord = {
        runId: "r",
        revision: 1,
        op: "phase",
        events: [
          {
            ...scope,
            at: 1,
            revision: 1,
            type: "run_started",
            agent: "a",
            parentRunId: undefined,
            messages: [],
            history: 0,
            context: {}
          }
        ],
        delta: {},
        createdAt: 1,
        workerId: "w"
      }
      const said = (revision: number, other: Partial<RunState.RunRecord>, at = 1): RunState.RunRecord => ({
        ...begin,
        revision,
        events: [{ ...scope, at, revision, type: "turn_started", turnId: `t${revision}` }],
        ...other
      })
      const records = [
        begin,
        said(2, {}),
        said(3, { workerId: "another" }),
        said(4, { createdAt: 2 }),
        said(5, { delta: { settled: true } }),
        said(6, { op: "resume", delta: { resumed: true } }),
        said(7, { events: said(7, {}).events.map((event) => ({ ...event, revision: 6 })) }),
        said(8, { events: said(8, {}).events.map((event) => ({ ...event, runId: "a task" })) }),
        said(9, { events: [...said(9, {}).events, ...said(9, {}).events] }),
        said(10, { op: "launch", events: [] }),
        said(11, { op: "resume" })
      ]
      let state = RunState.advance(undefined, begin)
      yield* store.create(begin, state)
      for (const record of records.slice(1)) {
        state = RunState.advance(state, record)
        yield* store.commit(record, state)
      }
      assert.deepStrictEqual(yield* Stream.runCollect(store.read("r")), records)
      assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(store.tail("r", 4), 7)), records.slice(4))
    })
  )
})

describe("RunStore.makeMemory", () => {
  suite(Effect.succeed(Effect.runSync(RunStore.makeMemory)))
})

/** What a person changes in a fork. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import {
  Agent,
  Kernel,
  MediaStore,
  Message,
  Model,
  ProtocolRegistry,
  Provider,
  RunState,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"
import * as Edits from "../../src/studio/internal/forkEdits.ts"
import { command, final } from "../support/blocks.ts"

const look = Skill.make("look", {
  description: "Looks",
  effects: "read",
  input: Schema.Struct({}),
  execute: () => Effect.succeed("free")
})

const count = Skill.make("count", {
  description: "Counts",
  effects: "read",
  input: Schema.Struct({}),
  execute: () => Effect.succeed(2)
})

const small = Model.make("small", { capabilities: ["text"] })

const agent = Agent.make({ name: "clerk", instructions: "You book.", model: "scripted", skills: [look, count] })

/** The text of the instructions in a request. */
const systemIn = ({ messages }: Provider.Request) =>
  messages
    .filter(({ role }) => role === "system")
    .map((message) => Message.text(message))
    .join()

/** Runs a body beside a model that replies in order, and gives it the requests. */
const withReplies = <A, E>(
  replies: ReadonlyArray<string>,
  body: (requests: ReadonlyArray<Provider.Request>) => Effect.Effect<A, E, Kernel.Kernel | RunStore.RunStore>
) => {
  const requests: Array<Provider.Request> = []
  const mock = MockProvider.make().onCall((request) => {
    requests.push(request)
    return replies[requests.length - 1] ?? ""
  })
  return body(requests).pipe(
    Effect.provide(
      Kernel.layer.pipe(
        Layer.provide([
          Layer.succeed(Provider.Provider, mock),
          SkillRegistry.layer(),
          ProtocolRegistry.layer(),
          MediaStore.layerMemory
        ]),
        Layer.provideMerge(RunStore.layerMemory)
      )
    )
  )
}

const recordsOf = (runId: string) => RunStore.RunStore.use((store) => Stream.runCollect(store.read(runId)))

/** Returns the revision at which a turn was prepared. */
const preparedAt = Effect.fnUntraced(function* (runId: string, turn: number) {
  const records = yield* recordsOf(runId)
  const found = records.filter(({ events }) => events.some(({ type }) => type === "turn_prepared"))
  return found[turn - 1]?.revision ?? 0
})

const models = new Map([["tiny/small", small]])

/** Forks a run with changes, and runs the fork. */
const play = Effect.fnUntraced(function* (runId: string, fork: Edits.Fork) {
  const edit = Edits.editOf(runId, "fork", fork, models)
  yield* Kernel.fork(runId, { revision: fork.revision, runId: "fork", edit })
  return yield* Kernel.resume(agent, "fork")
})

describe("editOf", () => {
  it.effect("plays a turn again with other instructions, model and temperature, and later turns as they were", () =>
    withReplies([command("look"), final("Done."), command("look"), final("Done again.")], (requests) =>
      Effect.gen(function* () {
        const { runId } = yield* Kernel.run(agent, "A seat?")
        const revision = yield* preparedAt(runId, 1)
        const { text } = yield* play(runId, {
          revision,
          instructions: "You refuse.",
          model: "tiny/small",
          temperature: 0.5
        })
        assert.strictEqual(text, "Done again.")
        const [first, , again, later] = requests
        assert.isDefined(first)
        assert.isDefined(again)
        assert.isDefined(later)
        assert.strictEqual(systemIn(again), "You refuse.")
        assert.strictEqual(again.model.id, "small")
        assert.strictEqual(again.generation.temperature, 0.5)
        assert.strictEqual(systemIn(later), systemIn(first))
        assert.strictEqual(later.model.id, "scripted")
        assert.strictEqual(later.generation.temperature, first.generation.temperature)
      })
    )
  )

  it.effect("plays a turn again after another result, a reply in other words and another question", () =>
    withReplies([command("look"), final("Free."), final("Taken.")], (requests) =>
      Effect.gen(function* () {
        const { calls, runId } = yield* Kernel.run(agent, "A seat?")
        const [look] = calls
        assert.isDefined(look)
        const before = yield* recordsOf(runId)
        const { text } = yield* play(runId, {
          revision: yield* preparedAt(runId, 2),
          question: "Is 12A free?",
          results: { [look.callId]: "taken" },
          messages: [{ at: 1, text: "I looked." }]
        })
        assert.strictEqual(text, "Taken.")
        assert.deepStrictEqual(
          requests[2]?.messages.filter(({ role }) => role !== "system").map((message) => Message.text(message)),
          ["Is 12A free?", "I looked.", '<block type="result" name="look">taken</block>']
        )
        assert.deepStrictEqual(yield* recordsOf(runId), before)
        const state = RunState.fold(yield* recordsOf("fork"))
        assert.deepStrictEqual(state?.turns[0]?.completed[0]?.output, [{ type: "text", text: "taken" }])
      })
    )
  )

  it.effect("replaces what a call failed with, and the value of a result beside its text", () =>
    withReplies([command("count"), command("nobody"), final("2"), final("3")], (requests) =>
      Effect.gen(function* () {
        const { calls, runId } = yield* Kernel.run(agent, "How many?")
        const results = Object.fromEntries(calls.map(({ callId }) => [callId, "3 seats"]))
        yield* play(runId, { revision: yield* preparedAt(runId, 3), results })
        assert.match(requests[3]?.messages.map((message) => Message.text(message)).join() ?? "", /3 seats.*3 seats/s)
        const state = RunState.fold(yield* recordsOf("fork"))
        const outcomes = state?.turns.flatMap(({ completed }) => completed) ?? []
        assert.deepStrictEqual(
          outcomes.map(({ error, value }) => [error, value]),
          [
            [undefined, undefined],
            [undefined, undefined]
          ]
        )
      })
    )
  )
})

describe("problemOf", () => {
  it.effect(
    "names what a fork cannot change: no turn, an unknown model, a message without a text, an unknown call",
    () =>
      withReplies([command("look"), final("Free.")], () =>
        Effect.gen(function* () {
          const { calls, runId } = yield* Kernel.run(agent, "A seat?")
          const revision = yield* preparedAt(runId, 2)
          const records = yield* recordsOf(runId)
          const state = RunState.fold(records.slice(0, revision)) ?? assert.fail("no state")
          const problem = (fork: Partial<Edits.Fork>) => Edits.problemOf(state, { revision, ...fork }, models)
          const [look] = calls
          assert.isUndefined(problem({ model: "tiny/small", results: { [look?.callId ?? ""]: "taken" } }))
          assert.isUndefined(problem({ messages: [{ at: 2, text: "taken" }] }))
          assert.strictEqual(problem({ revision: 1, temperature: 1 }), "no turn was prepared at revision 1")
          assert.strictEqual(problem({ model: "large" }), "the model 'large' is not one of those that are offered")
          assert.strictEqual(problem({ messages: [{ at: 3, text: "" }] }), "message 3 of the turn has no text")
          assert.strictEqual(
            problem({ results: { other: "" } }),
            `the call 'other' has no result at revision ${revision}`
          )
        })
      )
  )
})

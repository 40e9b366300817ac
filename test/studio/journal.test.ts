/** The journal as the page draws it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import {
  Agent,
  BlockParser,
  Kernel,
  MediaStore,
  ProtocolRegistry,
  Provider,
  RunState,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { RunTree } from "kernai/studio"
import { MockProvider } from "kernai/testing"
import { Journal } from "../../src/studio/page/journal.ts"
import { readReply } from "../../src/studio/internal/readReply.ts"
import { spansOf, stripsOf } from "../../src/studio/page/rows.ts"
import { command, final } from "../support/blocks.ts"
import { times } from "../support/longRun.ts"

const look = Skill.make("look", {
  description: "Looks",
  effects: "read",
  input: Schema.Struct({ at: Schema.String }),
  execute: ({ at }) => (at === "taken" ? Effect.fail("seat taken") : Effect.succeed(`free: ${at}`))
})

const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted", skills: "all", maxSteps: 2_000 })

const recorded = (...replies: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { runId } = yield* Kernel.run(agent, "A seat, please.")
    const store = yield* RunStore.RunStore
    return Array.from(yield* Stream.runCollect(store.read(runId)))
  }).pipe(
    Effect.provide(
      Kernel.layer.pipe(
        Layer.provide([
          Layer.succeed(Provider.Provider, MockProvider.make(...replies)),
          SkillRegistry.layer(look),
          ProtocolRegistry.layer(),
          MediaStore.layerMemory
        ]),
        Layer.provideMerge(RunStore.layerMemory)
      )
    )
  )

const journalOf = (records: ReadonlyArray<RunState.RunRecord>) => {
  const journal = new Journal()
  journal.add(JSON.parse(JSON.stringify(records)))
  return journal
}

const plain = (state: unknown) => JSON.parse(JSON.stringify(state))

describe("Journal", () => {
  it.effect("has at every revision the state that the kernel folds", () =>
    Effect.gen(function* () {
      const turns = Array.from({ length: 60 }, (_, at) => command("look", { at: `${at}` }))
      const records = yield* recorded(...turns, final("Done."))
      assert.isAbove(records.length, 512)
      const journal = journalOf(records)
      for (let at = records.length; at > 0; at -= 7) {
        const expected = plain(RunState.fold(records.slice(0, at)))
        assert.deepStrictEqual(plain(journal.stateAt(at)), expected)
      }
      assert.deepStrictEqual(plain(journal.stateAt(300)), plain(RunState.fold(records.slice(0, 300))))
    })
  )

  it.effect("returns every state of a long journal, and keeps few of them", () =>
    Effect.gen(function* () {
      const turns = Array.from({ length: times(1_700, 400) }, (_, at) => command("look", { at: `${at}` }))
      const records = yield* recorded(...turns, final("Done."))
      const journal = new Journal()
      journal.add(records)
      const late = records.length - 100
      for (const at of [records.length, late, 300, 301, 299, 1]) {
        const expected = RunState.fold(records.slice(0, at))
        const state = journal.stateAt(at)
        assert.deepStrictEqual(
          plain({ ...state, prompt: [], turns: [] }),
          plain({ ...expected, prompt: [], turns: [] })
        )
        assert.strictEqual(state?.prompt.length, expected?.prompt.length)
        assert.strictEqual(state?.turns.length, expected?.turns.length)
      }
      assert.strictEqual(journal.rows[journal.rowAt(late)]?.revision, late)
      assert.strictEqual(journal.rowAt(0), -1)
    })
  )

  it.effect("adds records once and in order", () =>
    Effect.gen(function* () {
      const records = yield* recorded(final("Done."))
      const journal = journalOf(records)
      journal.add(records)
      journal.add(records.slice(2))
      assert.strictEqual(journal.revision, records.length)
    })
  )

  it.effect("keeps the first decision about a call, with the name of its person", () =>
    Effect.gen(function* () {
      const records = yield* recorded(final("Done."))
      const last = records.at(-1)
      assert.isDefined(last)
      const signed = (revision: number, by: string, approved: boolean): RunState.RunRecord => ({
        ...last,
        revision,
        delta: { answers: [{ callId: "call-1", approved, by }] }
      })
      const journal = journalOf([
        ...records,
        signed(last.revision + 1, "Ada (studio)", true),
        signed(last.revision + 2, "Eva (studio)", false)
      ])
      assert.deepStrictEqual(
        [...journal.decisions.values()],
        [{ callId: "call-1", approved: true, by: "Ada (studio)" }]
      )
    })
  )

  it.effect("shows a failed call in the tree and in the film strip", () =>
    Effect.gen(function* () {
      const records = yield* recorded(command("look", { at: "taken" }), final("Sorry."))
      const { rows } = journalOf(records)
      const line = { runId: "r", agent: "clerk", createdAt: 0, updatedAt: 1, turns: 2 }
      const head = { ...line, parentRunId: undefined, status: { type: "completed" } }
      const known = new Map([["r", { line: head, records, upTo: Infinity }]])
      const [, turn, call] = RunTree.linesOf("r", known)
      assert.deepInclude(turn, { kind: "turn", status: "ok", errors: 1 })
      assert.deepInclude(call, { label: "look", status: "error" })
      assert.include(call?.error, "seat taken")
      assert.deepStrictEqual(
        spansOf(rows)
          .filter(({ kind }) => kind === "error")
          .map(({ revision }) => revision),
        rows.filter(({ tone }) => tone === "error").map(({ revision }) => revision)
      )
    })
  )
})

describe("stripsOf", () => {
  it("draws an error among thousands of spans, and no more strips than pixels", () => {
    const spans = Array.from({ length: 10_000 }, (_, at) => ({
      kind: at === 5_000 ? ("error" as const) : at % 2 === 0 ? ("model" as const) : ("other" as const),
      from: at,
      to: at + 1,
      revision: at + 1
    }))
    const strips = stripsOf(spans, 800)
    assert.isAtMost(strips.length, 800)
    assert.deepStrictEqual(
      strips.filter(({ kind }) => kind === "error").map(({ x }) => x),
      [400]
    )
    assert.strictEqual(strips.at(-1)?.revision, 10_000)
  })
})

describe("readReply", () => {
  const replies = [
    "no block",
    `Hi ${command("look", { at: "1" })} and ${final("yes <b>")} rest`,
    `<block type="command" name="a">{"x": "<block type=\\"final\\">no</block>"}</block>`,
    "text <final>never closed",
    "<final>&lt;/final></final><command>x</command>"
  ]
  for (const reply of replies) {
    it(`finds the place of each block in ${JSON.stringify(reply.slice(0, 40))}`, () => {
      const { blocks, pieces } = readReply(reply)
      const { blocks: expected, unclosed } = BlockParser.parse(reply)
      assert.strictEqual(pieces.map(({ text }) => text).join(""), reply)
      assert.deepStrictEqual(
        blocks.map(({ content, name, type }) => ({ type, name, content })),
        unclosed === undefined ? [...expected] : [...expected, unclosed]
      )
      const marked = pieces.filter(({ block }) => block !== undefined)
      assert.strictEqual(marked.length, blocks.length)
      for (const { block = 0, text } of marked) assert.isTrue(text.startsWith("<"), `${block}: ${text}`)
    })
  }
})

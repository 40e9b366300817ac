/** Thinking that a model writes into its text. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chunk, ending } from "../support/chatStream.ts"
import { answeringAs, outcome, sse } from "../support/scriptedHttp.ts"

const wires: { readonly [name: string]: (pieces: ReadonlyArray<string>) => string } = {
  compatible: (pieces) => pieces.map((content) => chunk({ content })).join("") + ending,
  ollama: (pieces) =>
    [...pieces.map((content) => ({ message: { content } })), { done: true, done_reason: "stop" }]
      .map((line) => `${JSON.stringify(line)}\n`)
      .join("")
}

const readOf = (name: string, pieces: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { provider } = yield* answeringAs(name, () => sse(wires[name]?.(pieces) ?? ""))
    const { parts } = yield* Effect.fromResult(yield* outcome(provider))
    let [text, thinking] = ["", ""]
    for (const part of parts) {
      if (part.type === "text-delta") text += part.delta
      else if (part.type === "reasoning-delta") thinking += part.delta
    }
    return { text, thinking }
  })

describe("a reply that begins with <think>", () => {
  const said = "\n<think>One </ two\n</think>\n\nIt is <think>2</think>."
  const read = { text: "It is <think>2</think>.", thinking: "One </ two\n" }
  for (const name of Object.keys(wires)) {
    it.effect(`is thinking up to </think>, wherever its pieces are cut: ${name}`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* readOf(name, [said]), read)
        assert.deepStrictEqual(yield* readOf(name, [...said]), read)
        for (let cut = 1; cut < said.length; cut++) {
          assert.deepStrictEqual(yield* readOf(name, [said.slice(0, cut), said.slice(cut)]), read)
        }
      })
    )

    it.effect(`keeps every other text: ${name}`, () =>
      Effect.gen(function* () {
        for (const text of ["Use <think> and </think>.", " <thin ice", "<think", "\n\n", "</think>x"]) {
          assert.deepStrictEqual(yield* readOf(name, [...text]), { text, thinking: "" })
        }
        assert.deepStrictEqual(yield* readOf(name, ["<think>", "never closed </thi"]), {
          text: "",
          thinking: "never closed </thi"
        })
      })
    )
  }

  it.effect("ends before a call", () =>
    Effect.gen(function* () {
      const call = { index: 0, id: "c", function: { name: "f", arguments: "{}" } }
      const { provider } = yield* answeringAs("compatible", () =>
        sse(chunk({ content: "<thi" }) + chunk({ tool_calls: [call] }) + ending)
      )
      const { parts } = yield* Effect.fromResult(yield* outcome(provider))
      const [text, begun] = [
        parts.findIndex(({ type }) => type === "text-delta"),
        parts.findIndex(({ type }) => type === "tool-params-start")
      ]
      assert.isTrue(text !== -1 && text < begun)
    })
  )
})

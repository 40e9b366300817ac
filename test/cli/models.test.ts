import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { resolve } from "../../src/cli/models.ts"
import { kernai } from "./support.ts"

describe("the model of a command", () => {
  it.effect("has capabilities inferred from its name when the catalogue lacks it (BP-182)", () =>
    Effect.gen(function* () {
      const { model } = yield* resolve("ollama/llava")
      assert.deepStrictEqual(model.capabilities, ["text", "vision"])
    }).pipe(Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: {} })))
  )

  const unknown: ReadonlyArray<readonly [model: string, reason: string]> = [
    [
      "openai/gpt-4.1",
      "OPENAI_API_KEY is not set, openai/gpt-4.1 needs it; 'kernai run' shows a recorded conversation without any key"
    ],
    ["gemini/gemini-2.5-pro", "GEMINI_API_KEY is not set"],
    ["groq/llama-3.3-70b-versatile", "GROQ_API_KEY is not set"],
    ["gpt-4.1", "'gpt-4.1' is not a model: expected <provider>/<model>"],
    ["acme/rocket", "unknown provider 'acme'; known: "]
  ]
  it.live.each(unknown)("is refused in one line when it is %s", ([model, reason]) =>
    Effect.gen(function* () {
      const { code, error, out } = yield* kernai(["run", "-m", model, "How many?"])
      assert.deepStrictEqual([code, out], [2, ""])
      assert.isTrue(error.startsWith(`kernai: ${reason}`), error)
      assert.strictEqual(error.indexOf("\n"), error.length - 1)
    })
  )
})

/** Servers where the model must speak between the results of calls and the user, and bridges that name calls. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Content } from "kernai"
import { RequestRules } from "kernai/testing"
import { message, picture, request, tool, vision } from "../support/provider.ts"
import { targets } from "../support/wires.ts"

const named = (name: string) =>
  Effect.map(targets, (all) => all.find((target) => target.name === name) ?? assert.fail(`no target '${name}'`))

const rolesIn = (body: unknown): ReadonlyArray<string> =>
  (body as { readonly messages: ReadonlyArray<{ readonly role: string }> }).messages.map(({ role }) => role)

const called = [
  message("user", "go"),
  message("assistant", Content.toolUse("a", "add", {}), Content.toolUse("b", "add", {})),
  message("tool", Content.toolResult("a", [picture]), Content.toolResult("b", "two"))
]

describe("a server that refuses a user message right after results", () => {
  it.effect("gets a message of the model between them, also before the media of results", () =>
    Effect.gen(function* () {
      const mistral = yield* named("mistral")
      const texts = request({ tools: [tool], messages: [...called, message("user", "and now?")] })
      assert.deepStrictEqual(rolesIn(yield* mistral.bodyOf(texts)), [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user"
      ])
      const shown = yield* mistral.bodyOf(request({ model: vision, tools: [tool], messages: called }))
      assert.deepStrictEqual(rolesIn(shown), ["user", "assistant", "tool", "tool", "assistant", "user"])
      assert.deepStrictEqual(RequestRules.check("mistral", shown), [])
    })
  )

  it.effect("gets none where the model speaks itself, and other servers get none at all", () =>
    Effect.gen(function* () {
      const messages = [...called, message("assistant", "done"), message("user", "and now?")]
      const roles = ["user", "assistant", "tool", "tool", "assistant", "user"]
      assert.deepStrictEqual(
        rolesIn(yield* (yield* named("mistral")).bodyOf(request({ tools: [tool], messages }))),
        roles
      )
      const asked = request({ tools: [tool], messages: [...called, message("user", "?")] })
      assert.deepStrictEqual(rolesIn(yield* (yield* named("compatible")).bodyOf(asked)), [
        "user",
        "assistant",
        "tool",
        "tool",
        "user"
      ])
    })
  )
})

describe("the results of Ollama, which has no ids", () => {
  it.effect("stand in the order of their calls, however they were stored", () =>
    Effect.gen(function* () {
      const ollama = yield* named("ollama")
      const messages = [
        message("user", "go"),
        message("assistant", Content.toolUse("a", "add", {}), Content.toolUse("b", "add", {})),
        message("tool", Content.toolResult("b", "second")),
        message("tool", Content.toolResult("a", "first"))
      ]
      const json = JSON.stringify(yield* ollama.bodyOf(request({ tools: [tool], messages })))
      assert.isBelow(json.indexOf("first"), json.indexOf("second"))
    })
  )
})

describe("a bridge to a model of another package", () => {
  for (const name of ["ai-sdk v2", "ai-sdk v3", "ai-sdk v4", "effect-ai"]) {
    it.effect(`sends ${name} names that every vendor takes, the same for a call and its result`, () =>
      Effect.gen(function* () {
        const target = yield* named(name)
        const messages = [
          message("user", "go"),
          message("assistant", Content.toolUse("a", "browser.tabs.open", {})),
          message("tool", Content.toolResult("a", "x"))
        ]
        const body = yield* target.bodyOf(request({ tools: [{ ...tool, name: "3d.view" }], messages }))
        assert.deepStrictEqual(RequestRules.check(target.wire, body), [])
        assert.lengthOf(JSON.stringify(body).match(/browser_tabs_open_[0-9a-f]{16}/g) ?? [], 2)
        assert.match(JSON.stringify(body), /tool_3d_view_[0-9a-f]{16}/)
      })
    )

    it.effect(`sends ${name} a picture at an address that the model reads, and no other`, () =>
      Effect.gen(function* () {
        const target = yield* named(name)
        const at = (url: string) => Content.image({ url, mediaType: "image/png" })
        const pictures = [at("https://x.test/a.png"), at("https://elsewhere.test/b.png"), at("no address")]
        const body = yield* target.bodyOf(request({ model: vision, messages: [message("user", "?", ...pictures)] }))
        const text = JSON.stringify(body)
        assert.include(text, "https://x.test/a.png")
        // A model of effect/ai does not say which addresses it reads.
        assert.strictEqual(text.includes("elsewhere.test"), name === "effect-ai")
        assert.notInclude(text, "no address")
        assert.deepStrictEqual(RequestRules.check(target.wire, body), [])
      })
    )

    it.effect(`sends ${name} no blank result, also where its only medium cannot be read`, () =>
      Effect.gen(function* () {
        const target = yield* named(name)
        for (const content of [[], [Content.text(" ")], [picture]]) {
          const messages = [
            message("user", "go"),
            message("assistant", Content.toolUse("a", "add", {})),
            message("tool", Content.toolResult("a", content, { isError: true }))
          ]
          const body = yield* target.bodyOf(request({ model: vision, tools: [tool], messages }))
          assert.deepStrictEqual(RequestRules.check(target.wire, body), [])
        }
      })
    )
  }
})

/** The rules of vendors find what is wrong with a request, each kind of fault in each format. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Base64 from "effect/encoding/Base64"
import { Content, type Message } from "kernai"
import { RequestRules } from "kernai/testing"
import { pdf, png } from "../support/images.ts"
import { message, request, tool } from "../support/provider.ts"
import { type Target, targets } from "../support/wires.ts"

const signed = (provider: string) =>
  Content.thinking("hm", {
    origin: { provider, model: "m" },
    signature: { signature: "s", id: "r", encrypted: "e", options: { acme: { s: "s" } } }
  })

const conversation = (provider: string): ReadonlyArray<Message.Message> => [
  message("system", "You help."),
  message("user", "go"),
  message("assistant", signed(provider), Content.text("yes"), Content.toolUse("callaaaa1", "add", { a: 1 })),
  message("tool", Content.toolResult("callaaaa1", "one")),
  message("assistant", Content.toolUse("callaaaa2", "add", { a: 2 })),
  message("tool", Content.toolResult("callaaaa2", "two")),
  message("assistant", "done"),
  message("user", "and now?")
]

const providerOf = ({ name, wire }: Target): string =>
  wire === "responses" ? "openai" : wire === "ai-sdk" ? "acme" : wire === "effect-ai" ? "ai" : name

const bodyOf = (target: Target) =>
  Effect.map(
    target.bodyOf(
      request({
        model: { id: "m", capabilities: ["text"] },
        messages: conversation(providerOf(target)),
        tools: [tool],
        cacheBreakpoints: [1]
      })
    ),
    (body): unknown => JSON.parse(JSON.stringify(body))
  )

type Fields = { [key: string]: unknown }
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Applies a change to every object of a body, from the inside out, and tells whether one was changed. */
const changed = (body: unknown, change: (fields: Fields, key: string) => boolean): boolean => {
  let isChanged = false
  const walk = (value: unknown, key: string): void => {
    if (Array.isArray(value)) value.forEach((item) => walk(item, key))
    if (!isFields(value)) return
    for (const [name, inner] of Object.entries(value)) walk(inner, name)
    isChanged = change(value, key) || isChanged
  }
  walk(body, "")
  return isChanged
}

/** The list of messages of a body. */
const listOf = (body: unknown): Array<Fields> => {
  const fields = isFields(body) ? body : {}
  const prompt = isFields(fields["prompt"]) ? fields["prompt"]["content"] : fields["prompt"]
  const list = fields["messages"] ?? fields["input"] ?? fields["contents"] ?? prompt
  return Array.isArray(list) ? list : []
}

const textKeys = ["text", "content", "output", "result", "value"]
const resultTypes = ["tool_result", "function_call_output", "function_result", "tool-result"]
const isResult = (fields: Fields): boolean =>
  fields["role"] === "tool" || resultTypes.includes(String(fields["type"])) || "functionResponse" in fields
const holdsResult = (item: Fields): boolean =>
  isResult(item) || [item["content"], item["parts"]].flat().some((part) => isFields(part) && isResult(part))

const replace = (from: string, to: string) => (body: unknown) =>
  changed(body, (fields) => {
    const keys = textKeys.filter((key) => fields[key] === from)
    for (const key of keys) fields[key] = to
    return keys.length > 0
  })

/** A fault by the rule that it breaks. Returns false if the format has nothing that can be broken so. */
const faults: { readonly [kind: string]: readonly [RequestRules.Rule, (body: unknown) => boolean] } = {
  "half of a surrogate pair": ["text", replace("go", "go\ud83c")],
  "a NUL": ["text", replace("go", "go\0")],
  "a name of a tool that the vendor refuses": [
    "name",
    (body) => changed(body, (fields) => fields["name"] === "add" && Boolean((fields["name"] = "a.b c")))
  ],
  "an id of a call that the vendor refuses": [
    "callId",
    (body) =>
      changed(body, (fields) => {
        const keys = Object.keys(fields).filter((key) => fields[key] === "callaaaa1")
        for (const key of keys) fields[key] = "no id!"
        return keys.length > 0
      })
  ],
  "an id that is used twice": [
    "callId",
    (body) =>
      changed(body, (fields) => {
        const keys = Object.keys(fields).filter((key) => fields[key] === "callaaaa2")
        for (const key of keys) fields[key] = "callaaaa1"
        return keys.length > 0
      })
  ],
  "a result that is missing": [
    "results",
    (body) => {
      const list = listOf(body)
      const at = list.findIndex(holdsResult)
      return at >= 0 && list.splice(at, 1).length > 0
    }
  ],
  "a result without its call": [
    "results",
    (body) => {
      const list = listOf(body)
      const found = list.find(holdsResult)
      return found !== undefined && list.push(structuredClone(found)) > 0
    }
  ],
  "a result behind a message of the user": [
    "results",
    (body) => {
      const list = listOf(body)
      const at = list.findIndex(holdsResult)
      const user = list.findLast((item) => item["role"] === "user" || item["type"] === "user_input")
      return at >= 0 && user !== undefined && list.splice(at, 0, structuredClone(user)).length === 0
    }
  ],
  "a message without content": [
    "shape",
    (body) => {
      const user = listOf(body).findLast((item) => item["role"] === "user" || item["type"] === "user_input")
      if (user === undefined) return false
      user["parts" in user ? "parts" : "content"] = []
      return true
    }
  ],
  "a blank text": ["refusesBlank", replace("go", " \n")],
  "a message of the model at its beginning": [
    "userFirst",
    (body) => {
      const list = listOf(body)
      const at = list.findIndex((item) => item["role"] === "user" || item["type"] === "user_input")
      return list.splice(at, 1).length > 0
    }
  ],
  "a message of the model at its end": [
    "userLast",
    (body) => {
      const list = listOf(body)
      const said = list.findLast(
        (item) => ["assistant", "model"].includes(String(item["role"])) || item["type"] === "model_output"
      )
      return said !== undefined && list.push(structuredClone(said)) > 0
    }
  ],
  "reasoning that nothing follows": [
    "needsItemAfterReasoning",
    (body) => {
      const list = listOf(body)
      const kinds = ["thinking", "reasoning", "thought"]
      const at = list.findIndex(({ type }) => kinds.includes(String(type)))
      if (at >= 0) return list.push(...list.splice(at, 1)) > 0
      return list.some(({ content }) => {
        if (!Array.isArray(content)) return false
        const inner = content.findIndex((part) => isFields(part) && kinds.includes(String(part["type"])))
        return inner >= 0 && content.push(...content.splice(inner, 1)) > 0
      })
    }
  ],
  "a user who speaks right after results": [
    "answersResults",
    (body) => {
      const list = listOf(body)
      const at = list.findLastIndex(({ role }) => role === "assistant")
      return list.splice(at, 1).length > 0
    }
  ],
  "an input of a call that is no object": [
    "shape",
    (body) =>
      changed(body, (fields) => {
        const key = ["arguments", "args", "input", "params"].find((name) => {
          const value = fields[name]
          return value === '{"a":1}' || (isFields(value) && value["a"] === 1)
        })
        if (key === undefined) return false
        fields[key] = "no object"
        return true
      })
  ],
  "too many cache marks": [
    "cacheMarks",
    (body) =>
      changed(
        body,
        (fields) => fields["type"] === "text" && Boolean((fields["cache_control"] = { type: "ephemeral" }))
      ) &&
      changed(body, (fields) => resultTypes.includes(String(fields["type"])) && Boolean((fields["cache_control"] = {})))
  ]
}

/** The formats that have a rule. All others accept its fault. */
const onlyIn: { readonly [rule in RequestRules.Rule]?: ReadonlyArray<RequestRules.Wire> } = {
  callId: RequestRules.wires.filter((wire) => wire !== "ollama"),
  refusesBlank: ["anthropic", "gemini-interactions", "ai-sdk", "effect-ai"],
  userFirst: ["gemini", "gemini-interactions", "ai-sdk", "effect-ai"],
  userLast: ["mistral", "gemini", "gemini-interactions", "ai-sdk", "effect-ai"],
  needsItemAfterReasoning: ["anthropic", "responses", "ai-sdk", "effect-ai"],
  answersResults: ["mistral"],
  cacheMarks: ["anthropic"]
}

describe("the rules of vendors", () => {
  it.effect("accept a plain conversation in every format", () =>
    Effect.gen(function* () {
      for (const target of yield* targets) {
        assert.deepStrictEqual(RequestRules.check(target.wire, yield* bodyOf(target)), [], target.name)
      }
    })
  )

  for (const [kind, [rule, plant]] of Object.entries(faults)) {
    it.effect(`find ${kind}`, () =>
      Effect.gen(function* () {
        let planted = 0
        for (const target of yield* targets) {
          if (onlyIn[rule]?.includes(target.wire) === false) continue
          const body = yield* bodyOf(target)
          assert.isTrue(plant(body), `${target.name}: the fault is not planted`)
          const found = RequestRules.check(target.wire, body)
          assert.include(
            found.map((violation) => violation.rule),
            rule,
            target.name
          )
          planted++
        }
        console.log(`faults planted: ${planted}`)
        assert.isAbove(planted, 0)
      })
    )
  }

  it("find a call of the vendor's own tools without its result, except where the vendor continues", () => {
    const use = { type: "server_tool_use", id: "s", name: "web_search", input: {} }
    const result = { type: "web_search_tool_result", tool_use_id: "s", content: [] }
    const go = { role: "user", content: "go" }
    const rulesIn = (...messages: ReadonlyArray<unknown>) =>
      RequestRules.check("anthropic", { messages: [go, ...messages] }).map(({ rule }) => rule)
    const model = (...content: ReadonlyArray<unknown>) => ({ role: "assistant", content })
    assert.deepStrictEqual(rulesIn(model(use)), [])
    assert.deepStrictEqual(rulesIn(model(use), model(result), go), [])
    assert.deepStrictEqual(rulesIn(model(use), go), ["results"])
    assert.deepStrictEqual(rulesIn(model(result), go), ["results"])
  })

  it("find images that are too many, too large or too heavy", () => {
    const showing = (...images: ReadonlyArray<Uint8Array>) => ({
      messages: [
        {
          role: "user",
          content: images.map((data) => ({
            type: "image",
            source: { type: "base64", media_type: "image/png", data: Base64.encode(data) }
          }))
        }
      ]
    })
    const heavy = new Uint8Array(7_900_000)
    heavy.set(png(1, 1))
    assert.deepStrictEqual(RequestRules.check("anthropic", showing(png(8_000, 1))), [])
    const bad = [
      showing(png(8_001, 1)),
      showing(png(2_001, 1), ...Array(20).fill(png(1, 1))),
      showing(...Array(101).fill(png(1, 1))),
      showing(heavy)
    ]
    for (const body of bad) {
      const found = RequestRules.check("anthropic", body)
      assert.deepStrictEqual(
        found.map(({ rule }) => rule),
        ["images"]
      )
    }
  })

  it("find PDF files with too many pages or bytes, and a request that is too large", () => {
    const anthropic = (...files: ReadonlyArray<Uint8Array>) => ({
      messages: [
        {
          role: "user",
          content: files.map((data) => ({
            type: "document",
            source: { type: "base64", media_type: "application/pdf", data: Base64.encode(data) }
          }))
        }
      ]
    })
    const gemini = (file: Uint8Array) => ({
      contents: [{ role: "user", parts: [{ inlineData: { mimeType: "application/pdf", data: Base64.encode(file) } }] }]
    })
    const rulesIn = (wire: RequestRules.Wire, body: object) => RequestRules.check(wire, body).map(({ rule }) => rule)
    assert.deepStrictEqual(rulesIn("anthropic", anthropic(pdf(300), pdf(300))), [])
    assert.deepStrictEqual(rulesIn("anthropic", anthropic(pdf(300), pdf(301))), ["pdf"])
    assert.deepStrictEqual(rulesIn("gemini", gemini(pdf(1_001))), ["pdf"])
    assert.deepStrictEqual(rulesIn("gemini", gemini(pdf(1, 53_000_000))), ["pdf"])
    assert.deepStrictEqual(rulesIn("anthropic", anthropic(pdf(1, 13_000_000), pdf(1, 12_000_000))), ["requestBytes"])
  })

  it("find a body that is no request", () => {
    for (const wire of RequestRules.wires) {
      for (const body of [null, "x", [], {}, { messages: 3 }, { messages: [{ role: "robot", content: "x" }] }]) {
        assert.isAbove(RequestRules.check(wire, body).length, 0)
      }
    }
  })

  it("say where they are published", () => {
    assert.isAbove(RequestRules.sourcesOf("anthropic", "results").length, 0)
    assert.deepStrictEqual(RequestRules.sourcesOf("ollama", "shape"), [])
  })
})

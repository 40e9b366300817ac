/** Results of calls, resources and prompts that no schema of the protocol accepts, from a server in a process of its own. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Agent, Content, Kernel, MediaStore, RunStore } from "kernai"
import { MockProvider } from "kernai/testing"
import { readable } from "../../src/mcp/internal/readableResult.ts"
import { command, final } from "../support/blocks.ts"
import { of } from "../support/kernel.ts"
import * as Support from "../support/mcp/connect.ts"
import * as Hub from "../support/mcp/hub.ts"

const png = "iVBORw0KGgo="
const text = { type: "text", text: "good" }
const image = { type: "image", data: new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10]), mediaType: "image/png" }
const omitted = (type: string) => Content.text(`[non-text content omitted: type=${type}]`)

/** Results by the name of their tool, and what is read of them. */
const cases: { readonly [name: string]: readonly [result: unknown, read: ReadonlyArray<Content.Content>] } = {
  structured: [{ structuredContent: { answer: 42 } }, [Content.data({ answer: 42 })]],
  null_content: [{ content: null, structuredContent: { answer: 42 } }, [Content.data({ answer: 42 })]],
  null_alone: [{ content: null }, [Content.text("")]],
  null_structured: [{ content: [text], structuredContent: null, isError: null, _meta: null }, [Content.text("good")]],
  nothing: [{}, [Content.text("")]],
  unknown_block: [
    { content: [{ type: "hologram", data: "x" }, text] },
    [Content.text("[non-text content omitted: type=hologram]\ngood")]
  ],
  unknown_text: [{ content: [{ type: "markdown", text: "# good" }] }, [Content.text("# good")]],
  broken_image: [
    { content: [text, { type: "image", data: "%%%", mimeType: "image/png" }] },
    [Content.text("good\n[non-text content omitted: type=image]")]
  ],
  empty_image: [{ content: [{ type: "image", data: "", mimeType: "image/png" }] }, [omitted("image")]],
  data_url: [
    { content: [{ type: "image", data: `data:image/png;base64,${png}` }] },
    [Content.image({ data: image.data, mediaType: "image/png" })]
  ],
  unpadded: [
    { content: [{ type: "image", data: "iVBOR\nw0KGgo", mimeType: "image/png" }] },
    [Content.image({ data: image.data, mediaType: "image/png" })]
  ],
  nameless_link: [{ content: [{ type: "resource_link", uri: "x://a" }] }, [Content.text("x://a (x://a)")]],
  broken_resource: [
    { content: [{ type: "resource", resource: { uri: "x://a", blob: "%%%" } }, text] },
    [Content.text("[non-text content omitted: type=resource]\ngood")]
  ],
  odd_annotations: [{ content: [{ ...text, annotations: { priority: "high" } }] }, [Content.text("good")]],
  number: [{ content: [{ type: "text", text: 7 }] }, [Content.text("7")]],
  words: [{ content: "good" }, [Content.text("good")]],
  one_block: [{ content: text }, [Content.text("good")]],
  strings: [{ content: ["good", 7] }, [Content.text("good\n7")]],
  old: [{ toolResult: { a: 1 } }, [Content.text('{"toolResult":{"a":1}}')]]
}

layer(Support.platform, { excludeTestServices: true, timeout: "60 seconds" })("The result of a call that ran", (it) => {
  const scripted = Hub.scripted({
    tools: Object.keys(cases).map((name) => Hub.tool(name)),
    results: Object.fromEntries(Object.entries(cases).map(([name, [result]]) => [name, result]))
  })

  it.effect("is read as far as it can be read, whatever its form", () =>
    Effect.gen(function* () {
      const { settings } = yield* scripted
      yield* Effect.gen(function* () {
        for (const [name, [, read]] of Object.entries(cases)) {
          assert.deepStrictEqual(yield* Hub.call(`mcp_s__${name}`), read, name)
        }
      }).pipe(Effect.provide(Hub.hub({ s: settings })))
    })
  )

  it.effect("reaches the run as the result of its skill", () =>
    Effect.gen(function* () {
      const { settings } = yield* scripted
      const names = Object.keys(cases)
      const mock = MockProvider.make(names.map((name) => command(`mcp_s__${name}`, {})).join(""), final("done"))
      const kernel = Kernel.layer.pipe(
        Layer.provideMerge(Hub.hub({ s: settings })),
        Layer.provide([MockProvider.layerOf(mock), MediaStore.layerMemory, RunStore.layerMemory])
      )
      const agent = Agent.make({ instructions: "", model: "mock", skills: "all" })
      const events = yield* Effect.provide(Stream.runCollect(Kernel.stream(agent, "go")), kernel)
      assert.deepStrictEqual(
        of([...events], "skill_result").map(({ skill }) => skill),
        names.map((name) => `mcp_s__${name}`)
      )
    })
  )
})

const contents = (...list: ReadonlyArray<unknown>) => ({ contents: list })
const good = { uri: "x://good", text: "good" }

/** Answers to `resources/read` by the address of their resource, and what is read of them. */
const resources: { readonly [uri: string]: readonly [result: unknown, read: ReadonlyArray<Content.Content>] } = {
  "x://broken": [
    contents({ uri: "x://broken", blob: "%%%" }, good),
    [Content.text("[non-text content omitted: type=resource]\ngood")]
  ],
  "x://unknown": [
    contents(good, { uri: "x://unknown", frames: 7 }),
    [Content.text('good\n{"uri":"x://unknown","frames":7}')]
  ],
  "x://number": [contents({ uri: "x://number", text: 7 }), [Content.text("7")]],
  "x://nameless": [contents({ text: "good" }, "more", null), [Content.text("good\nmore\nnull")]],
  "x://odd": [contents({ ...good, mimeType: null, _meta: "none" }), [Content.text("good")]],
  "x://alone": [{ contents: good }, [Content.text("good")]],
  "x://null": [{ contents: null }, [Content.text("")]],
  "x://unpadded": [
    contents({ uri: "x://unpadded", blob: "iVBOR\nw0KGgo", mimeType: "image/png" }),
    [Content.image({ data: image.data, mediaType: "image/png" })]
  ]
}

const messages = (...list: ReadonlyArray<unknown>) => ({ messages: list })
const asked = { role: "user", content: text }

/** Answers to `prompts/get` by the name of their prompt, and what is read of them. */
const prompts: { readonly [name: string]: readonly [result: unknown, read: ReadonlyArray<Content.Content>] } = {
  unknown: [
    messages({ role: "user", content: { type: "hologram" } }, asked),
    [Content.text("user: [non-text content omitted: type=hologram]\nuser: good")]
  ],
  broken: [
    messages(asked, { role: "assistant", content: { type: "image", data: "%%%", mimeType: "image/png" } }),
    [Content.text("user: good\nassistant: [non-text content omitted: type=image]")]
  ],
  several: [
    messages({ role: "assistant", content: [text, "more"] }),
    [Content.text("assistant: good\nassistant: more")]
  ],
  words: [messages({ role: "user", content: "good" }, "more"), [Content.text("user: good\nuser: more")]],
  odd_role: [messages({ role: "system", content: text }), [Content.text("user: good")]],
  odd_description: [{ ...messages(asked), description: 7, _meta: null }, [Content.text("user: good")]],
  null: [{ messages: null }, [Content.text("")]]
}

layer(Support.platform, { excludeTestServices: true, timeout: "60 seconds" })("An answer", (it) => {
  const scripted = Hub.scripted({
    tools: [],
    resources: Object.keys(resources).map((uri) => ({ uri, name: uri })),
    prompts: Object.keys(prompts).map((name) => ({ name })),
    results: Object.fromEntries(Object.entries({ ...resources, ...prompts }).map(([name, [result]]) => [name, result]))
  })

  it.effect("about a resource or a prompt is read as far as it can be read", () =>
    Effect.gen(function* () {
      const { settings } = yield* scripted
      yield* Effect.gen(function* () {
        for (const [uri, [, read]] of Object.entries(resources)) {
          assert.deepStrictEqual(yield* Hub.speak({ method: "resources/read", params: { uri } }), read, uri)
        }
        for (const [name, [, read]] of Object.entries(prompts)) {
          assert.deepStrictEqual(yield* Hub.speak({ method: "prompts/get", params: { name } }), read, name)
        }
      }).pipe(Effect.provide(Hub.hub({ s: settings })))
    })
  )
})

describe("readable", () => {
  it("keeps the error of a result without a block that can be read", () => {
    assert.deepStrictEqual(readable({ content: [null], isError: "true" }), {
      content: [{ type: "text", text: "null" }],
      isError: true
    })
    assert.deepStrictEqual(readable(null), { content: [] })
    assert.deepStrictEqual(readable("said"), { content: [{ type: "text", text: "said" }] })
    assert.deepStrictEqual(readable(text), { content: [text] })
    assert.deepStrictEqual(readable([text, text]), { content: [text, text] })
  })
})

/**
 * The server that the official conformance suite examines: skills as tools, and what else it asks for as registrations.
 * Prints its address.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Context, Effect, Layer, Schema } from "effect"
import { McpSchema, McpServer } from "effect/ai"
import { McpServe } from "../../src/mcp/index.ts"
import * as Media from "../../src/Media.ts"
import * as Message from "../../src/Message.ts"
import * as Skill from "../../src/Skill.ts"
import * as SkillRegistry from "../../src/SkillRegistry.ts"

const png = Uint8Array.from(
  atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="),
  (char) => char.charCodeAt(0)
)
const wav = Uint8Array.from(atob("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="), (char) =>
  char.charCodeAt(0)
)
const file = (text: string, mimeType: string) => Media.fromBytes(new TextEncoder().encode(text), mimeType)
const none = Schema.Struct({})
const pause = Effect.sleep("150 millis")

const skill = (name: string, value: unknown) =>
  Skill.make(name, { description: `Answers as ${name}`, input: none, execute: () => Effect.succeed(value) })

/** A skill that asks the person of the client. */
const asks = <Input>(
  name: string,
  input: Schema.Codec<Input, unknown>,
  form: (input: Input) => { readonly message: string; readonly properties: Parameters<typeof schemaOf>[0] }
) =>
  Skill.make(name, {
    description: "Asks the person of the client",
    input,
    execute: Effect.fnUntraced(function* (input, { ask }) {
      const { message, properties } = form(input)
      if (ask === undefined) return yield* Effect.fail("the client cannot ask anybody")
      const reply = yield* ask({ message, form: schemaOf(properties) })
      return reply._tag === "Accepted"
        ? `Elicitation completed: action=accept, content=${JSON.stringify(reply.values)}`
        : `Elicitation completed: action=${reply._tag === "Declined" ? "decline" : "cancel"}`
    })
  })

type Property = { readonly [key: string]: Schema.Json }

const schemaOf = (properties: { readonly [name: string]: Property }, required: ReadonlyArray<string> = []) => ({
  type: "object",
  properties,
  ...(required.length === 0 ? {} : { required: [...required] })
})

const choices = ["option1", "option2", "option3"]
const titled = [
  { const: "value1", title: "First Option" },
  { const: "value2", title: "Second Option" },
  { const: "value3", title: "Third Option" }
]

const skills = [
  skill("test_simple_text", "This is a simple text response for testing."),
  skill("test_image_content", Media.fromBytes(png, "image/png")),
  skill("test_audio_content", Media.fromBytes(wav, "audio/wav")),
  skill("test_embedded_resource", file("This is an embedded resource content.", "text/plain")),
  skill("test_multiple_content_types", [
    "Multiple content types test:",
    Media.fromBytes(png, "image/png"),
    file(`{"test":"data","value":123}`, "application/json")
  ]),
  Skill.make("test_error_handling", {
    description: "Fails",
    input: none,
    execute: () => Effect.fail("This tool intentionally returns an error for testing")
  }),
  Skill.make("test_tool_with_progress", {
    description: "Reports its progress",
    input: none,
    execute: Effect.fnUntraced(function* (_, { progress }) {
      for (const at of [0, 50, 100]) {
        yield* progress({ progress: at, total: 100 })
        yield* pause
      }
      return "done"
    })
  }),
  Skill.make("test_sampling", {
    description: "Asks the model of the client",
    input: Schema.Struct({ prompt: Schema.String }),
    execute: Effect.fnUntraced(function* ({ prompt }, { sample }) {
      if (sample === undefined) return yield* Effect.fail("the client has no model")
      const { text } = yield* sample({ messages: [Message.user(prompt)], maxTokens: 100 })
      return `LLM response: ${text}`
    })
  }),
  asks("test_elicitation", Schema.Struct({ message: Schema.String }), ({ message }) => ({
    message,
    properties: {
      username: { type: "string", description: "User's response" },
      email: { type: "string", description: "User's email address" }
    }
  })),
  asks("test_elicitation_sep1034_defaults", none, () => ({
    message: "Please review the defaults",
    properties: {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true }
    }
  })),
  asks("test_elicitation_sep1330_enums", none, () => ({
    message: "Please choose",
    properties: {
      untitledSingle: { type: "string", enum: choices },
      titledSingle: { type: "string", oneOf: titled },
      legacyEnum: {
        type: "string",
        enum: ["opt1", "opt2", "opt3"],
        enumNames: ["Option One", "Option Two", "Option Three"]
      },
      untitledMulti: { type: "array", items: { type: "string", enum: choices } },
      titledMulti: { type: "array", items: { anyOf: titled } }
    }
  }))
]

const text = (text: string) => ({ role: "user" as const, content: { type: "text" as const, text } })

const logging = Layer.effectDiscard(
  Effect.gen(function* () {
    const server = yield* McpServer.McpServer
    const tool = new McpSchema.Tool({
      name: "test_tool_with_logging",
      description: "Sends logs",
      inputSchema: { type: "object" }
    })
    const log = (data: string) => server.notifications["notifications/message"]({ level: "info", data })
    const handle = () =>
      Effect.gen(function* () {
        for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
          yield* log(data)
          yield* Effect.sleep("50 millis")
        }
        return new McpSchema.CallToolResult({ content: [{ type: "text", text: "logged" }] })
      })
    yield* server.addTool({ tool, annotations: Context.empty(), handle })
  })
)

const registrations = Layer.mergeAll(
  logging,
  McpServer.resource({
    uri: "test://static-text",
    name: "static text",
    description: "A text",
    mimeType: "text/plain",
    content: Effect.succeed({
      contents: [
        {
          uri: "test://static-text",
          mimeType: "text/plain",
          text: "This is the content of the static text resource."
        }
      ]
    })
  }),
  McpServer.resource({
    uri: "test://static-binary",
    name: "static binary",
    description: "An image",
    mimeType: "image/png",
    content: Effect.succeed({ contents: [{ uri: "test://static-binary", mimeType: "image/png", blob: png }] })
  }),
  McpServer.resource({
    uri: "test://watched-resource",
    name: "watched",
    description: "A text that changes",
    mimeType: "text/plain",
    content: Effect.succeed("watched")
  }),
  McpServer.resource`test://template/${McpSchema.param("id", Schema.String)}/data`({
    name: "template",
    description: "Data by its id",
    mimeType: "application/json",
    content: (_, id) => Effect.succeed(JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }))
  }),
  McpServer.prompt({
    name: "test_simple_prompt",
    description: "A prompt",
    content: () => Effect.succeed("This is a simple prompt for testing.")
  }),
  McpServer.prompt({
    name: "test_prompt_with_arguments",
    description: "A prompt with arguments",
    parameters: { arg1: Schema.String, arg2: Schema.String },
    completion: { arg1: (start) => Effect.succeed(["paris", "park", "test"].filter((word) => word.startsWith(start))) },
    content: ({ arg1, arg2 }) => Effect.succeed(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)
  }),
  McpServer.prompt({
    name: "test_prompt_with_embedded_resource",
    description: "A prompt with a resource",
    parameters: { resourceUri: Schema.String },
    content: ({ resourceUri: uri }) =>
      Effect.succeed([
        {
          role: "user" as const,
          content: {
            type: "resource" as const,
            resource: { uri, mimeType: "text/plain", text: "Embedded resource content for testing." }
          }
        },
        text("Please process the embedded resource above.")
      ])
  }),
  McpServer.prompt({
    name: "test_prompt_with_image",
    description: "A prompt with an image",
    content: () =>
      Effect.succeed([
        { role: "user" as const, content: { type: "image" as const, data: png, mimeType: "image/png" } },
        text("Please analyze the image above.")
      ])
  })
)

const program = Effect.gen(function* () {
  const { url } = yield* McpServe.http({ token: "none", registrations })
  yield* Effect.sync(() => process.stdout.write(`${url}\n`))
  return yield* Effect.never
}).pipe(Effect.scoped, Effect.provide(SkillRegistry.layer(...skills)))

NodeRuntime.runMain(program)

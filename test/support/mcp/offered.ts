/** Skills that our own MCP server offers: `node offered.ts` serves them on its standard streams. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Media from "../../../src/Media.ts"
import * as Skill from "../../../src/Skill.ts"
import * as SkillRegistry from "../../../src/SkillRegistry.ts"
import * as McpServe from "../../../src/mcp/McpServe.ts"

/** What a call that waits was made aware of. */
export const noted: Array<string> = []

export const skills = [
  Skill.make("greet", {
    description: "Greets",
    input: Schema.Struct({
      name: Schema.String.annotate({ description: "Whom" }),
      loud: Schema.optionalKey(Schema.Boolean)
    }),
    effects: "read",
    annotations: { title: "Greeting" },
    execute: ({ loud, name }) =>
      Effect.as(Effect.logInfo("a log is no message"), loud === true ? `HELLO ${name}` : `hello ${name}`)
  }),
  Skill.make("rows", {
    description: "Gives rows",
    input: Schema.Struct({}),
    effects: "read",
    execute: () => Effect.succeed({ rows: [1, 2] })
  }),
  Skill.make("picture", {
    description: "Draws",
    input: Schema.Struct({}),
    execute: () =>
      Effect.succeed([
        "a dot",
        Media.fromBytes(new Uint8Array([137, 80, 78, 71]), "image/png"),
        Media.fromBytes(new Uint8Array([37, 80, 68, 70]), "application/pdf"),
        Media.fromBytes(new Uint8Array([82, 73, 70, 70]), "audio/wav"),
        Media.fromUrl("https://example.com/dot.png")
      ])
  }),
  Skill.make("fail", {
    description: "Fails",
    input: Schema.Struct({}),
    execute: () => Effect.fail("no such row; Bearer sk-SECRET-0123456789abcdef")
  }),
  Skill.make("break", {
    description: "Breaks",
    input: Schema.Struct({}),
    execute: () => Effect.die(new Error("sk-SECRET-0123456789abcdef"))
  }),
  Skill.make("wait", {
    description: "Waits for ever",
    input: Schema.Struct({}),
    execute: () =>
      Effect.andThen(
        Effect.sync(() => noted.push("waiting")),
        Effect.onInterrupt(Effect.never, () => Effect.sync(() => void noted.push("stopped")))
      )
  }),
  Skill.make("reporting", {
    description: "Reports",
    input: Schema.Struct({ report: Schema.Json }),
    effects: "read",
    execute: ({ report }, { progress }) => Effect.as(progress(report), "reported")
  }),
  Skill.make("hidden", { description: "", input: Schema.Struct({}), execute: () => Effect.succeed("") })
] as const

export const offered = skills.filter((skill) => skill.name !== "hidden").map((skill) => skill.name)

if (process.argv[1] === import.meta.filename) {
  McpServe.stdio({ name: "offered", instructions: "Be kind", skills: offered }).pipe(
    Effect.scoped,
    Effect.provide(Layer.merge(Layer.orDie(SkillRegistry.layer(...skills)), NodeServices.layer)),
    NodeRuntime.runMain
  )
}

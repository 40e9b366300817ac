/** Hubs for tests, and servers that have what a test says. */
import { Effect, Layer, Option } from "effect"
import { ProtocolRegistry, Skill, SkillRegistry } from "kernai"
import { McpHub } from "kernai/mcp"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { folder } from "../folder.ts"
import { scope } from "../skillSpec.ts"
import { node, platform } from "./connect.ts"

const scriptedScript = fileURLToPath(new URL("scripted.mjs", import.meta.url))

/** What a scripted server has. */
export interface Script {
  readonly tools: ReadonlyArray<{ readonly name: string; readonly [key: string]: unknown }>
  readonly resources?: ReadonlyArray<unknown>
  readonly resourceTemplates?: ReadonlyArray<unknown>
  readonly prompts?: ReadonlyArray<unknown>
  readonly results?: { readonly [name: string]: unknown }
}

/** A tool in a script. */
export const tool = (name: string, more: { readonly [key: string]: unknown } = {}) => ({
  name,
  inputSchema: { type: "object" },
  ...more
})

/** A text as a tool answers it. */
export const said = (text: string) => ({ content: [{ type: "text", text }] })

/** A server of a script, which can be changed while it runs. One that is silent does not say so. */
export const scripted = (script: Script, isSilent = false) =>
  Effect.map(folder, (folder) => {
    const file = path.join(folder, "script.json")
    const change = (script: Script) => {
      fs.writeFileSync(`${file}.new`, JSON.stringify(script))
      // It looks at the time of the file.
      if (isSilent) fs.utimesSync(`${file}.new`, 1, 1)
      fs.renameSync(`${file}.new`, file)
    }
    change(script)
    const calls = () =>
      fs.existsSync(`${file}.calls`) ? fs.readFileSync(`${file}.calls`, "utf8").trim().split("\n") : []
    return { file, change, calls, settings: node(scriptedScript, file) }
  })

/** A hub over registries of its own, which it leaves readable. */
export const hub = (
  servers: { readonly [name: string]: unknown },
  options: {
    readonly hub?: McpHub.Options
    readonly native?: ReadonlyArray<Skill.AnySkill>
  } = {}
) =>
  McpHub.layerConfig({ servers }, options.hub).pipe(
    Layer.provideMerge(Layer.merge(SkillRegistry.layer(...(options.native ?? [])), ProtocolRegistry.layer())),
    Layer.provide(platform)
  )

/** The names of all skills. */
export const skillNames = Effect.flatMap(SkillRegistry.SkillRegistry, (registry) =>
  Effect.map(registry.all, (skills) => skills.map((skill) => skill.name))
)

/** The skill of a name. */
export const skill = (name: string) =>
  Effect.flatMap(SkillRegistry.SkillRegistry, (registry) =>
    Effect.map(Effect.fromOption(registry.find(name)), (skill) => skill)
  )

/** Calls a skill as the kernel does. */
export const call = (name: string, input: Parameters<Skill.AnySkill["call"]>[0] = {}) =>
  Effect.flatMap(skill(name), (skill) => skill.call(input, scope))

/** Says something in the `mcp` block. */
export const speak = (request: unknown) =>
  Effect.flatMap(ProtocolRegistry.ProtocolRegistry, (registry) => {
    const protocol = Option.getOrThrow(registry.find("mcp"))
    return protocol.handle(
      { type: "mcp", name: null, content: JSON.stringify(request) },
      { ...scope, refusal: () => undefined }
    )
  })

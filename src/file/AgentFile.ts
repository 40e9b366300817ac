/**
 * Reads agents from YAML or JSON files, and publishes their JSON Schema.
 *
 * A file is a config only: it names skills and protocols, and holds neither code nor secrets. Reading is bounded
 * whatever the file holds, and an invalid value is rejected with its path.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Bounds from "../kit/bounds.ts"
import type { Agent } from "../Agent.ts"
import * as Agents from "../Agent.ts"
import type { Json, JsonObject } from "../kit/json.ts"
import { isRecord, parseJson } from "../kit/json.ts"
import { utf8Length } from "../kit/text.ts"
import * as Yaml from "../kit/yaml.ts"
import { AgentConfigInvalid, ConfigInvalid } from "../KernelError.ts"
import type { AnySkill } from "../Skill.ts"
import * as Schemas from "./internal/agentSchema.ts"
import { toSchema } from "./internal/answerSchema.ts"
import { readText } from "./internal/disk.ts"

export { AgentConfigInvalid, ConfigInvalid }

/** More than any agent needs. */
const maxBytes = 256 * 1024

/**
 * Returns the JSON Schema of an agent file. The package contains it as `kernai/agent.schema.json`.
 *
 * An editor checks a file with the line `# yaml-language-server: $schema=./node_modules/kernai/agent.schema.json`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const jsonSchema: () => JsonObject = Schemas.jsonSchema

/**
 * Reads an agent from the text of a file.
 *
 * YAML text may also be JSON. An agent with an `output_schema` answers with JSON of that schema, whose type is known
 * only at run time. The schema must not contain a `pattern`. An unknown key fails, unless it begins with `x_` or `x-`.
 *
 * @example
 * const agent = yield* AgentFile.parse(`
 * name: librarian
 * system_prompt: You answer from the library.
 * model: anthropic/claude-sonnet-4-20250514
 * skills: [search]
 * `)
 *
 * @category constructors
 * @since 0.1.0
 */
export const parse: (
  text: string,
  format?: "yaml" | "json"
) => Effect.Effect<Agent<unknown>, ConfigInvalid | AgentConfigInvalid> = Effect.fnUntraced(function* (
  marked,
  format = "yaml"
) {
  const text = marked.startsWith("\uFEFF") ? marked.slice(1) : marked
  if (utf8Length(text) > maxBytes) return yield* unreadable(`it is longer than ${maxBytes} bytes`)
  const read: Result.Result<unknown, string> =
    format === "json"
      ? parseJson(text, Bounds.jsonDepth)
      : Result.map(Yaml.parse(text, { nodes: Bounds.yamlNodes, depth: Bounds.jsonDepth }), toJson)
  if (Result.isFailure(read)) return yield* unreadable(read.failure)
  const unknown = Agents.unknownKey(read.success)
  if (unknown !== undefined) return yield* unknown
  return yield* Effect.fromResult(fromConfig(read.success))
})

/**
 * Creates the schema of an answer from a JSON Schema, as `output_schema` has it. Rejects patterns, because matching them
 * against the output of a model could take unbounded time.
 *
 * @category constructors
 * @since 0.1.0
 */
export const outputSchema: (schema: unknown) => Result.Result<Schema.ConstraintDecoder<unknown>, AgentConfigInvalid> =
  toSchema

/**
 * Reads an agent from a config that was parsed elsewhere, with the schema of its answer.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromConfig = (config: unknown): Result.Result<Agent<unknown>, AgentConfigInvalid> => {
  const schema =
    typeof config === "object" && config !== null && "output_schema" in config ? config.output_schema : undefined
  if (schema === undefined) return Agents.fromConfig(config)
  return Result.flatMap(outputSchema(schema), (output) =>
    Result.map(
      Agents.fromConfig(config, { output }),
      // The model receives the schema as written in the file.
      (agent): Agent<unknown> => ({ ...agent, outputJsonSchema: () => (isRecord(schema) ? schema : {}) })
    )
  )
}

/**
 * Reads an agent from a file; `.json` is JSON, everything else YAML. Errors name the file.
 *
 * @category constructors
 * @since 0.1.0
 */
export const load: (
  path: string
) => Effect.Effect<Agent<unknown>, ConfigInvalid | AgentConfigInvalid, FileSystem.FileSystem> = (path) => loadFrom(path)

/** Loads the file at `path`. With `folder`, the file must be inside it. */
const loadFrom = Effect.fnUntraced(function* (path: string, folder?: string) {
  const text = yield* readText(path, "agent", maxBytes, folder)
  return yield* Effect.mapError(
    parse(text, path.toLowerCase().endsWith(".json") ? "json" : "yaml"),
    ({ _tag, path: at, reason }) => {
      const told = { path: at, reason: `${reason} (in '${path}')` }
      return _tag === "ConfigInvalid" ? new ConfigInvalid(told) : new AgentConfigInvalid(told)
    }
  )
})

/**
 * Reads every agent of a folder, by name: its `.yaml`, `.yml` and `.json` files, in the order of their file names. Fails
 * for a link that leads out of the folder.
 *
 * @category constructors
 * @since 0.1.0
 */
export const loadAll: (
  folder: string
) => Effect.Effect<
  ReadonlyMap<string, Agent<unknown>>,
  ConfigInvalid | AgentConfigInvalid,
  FileSystem.FileSystem | Path.Path
> = Effect.fnUntraced(function* (folder) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const { names, real } = yield* Effect.mapError(
    Effect.all({ names: fs.readDirectory(folder), real: fs.realPath(folder) }),
    (error) => invalid(`the folder '${folder}' cannot be read: ${error.message}`)
  )
  const agents = new Map<string, Agent<unknown>>()
  for (const name of names.filter((name) => /\.(?:ya?ml|json)$/i.test(name)).toSorted()) {
    const agent = yield* loadFrom(paths.join(folder, name), real)
    if (agents.has(agent.name)) return yield* invalid(`two agents of '${folder}' are called '${agent.name}'`)
    agents.set(agent.name, agent)
  }
  return agents
})

/**
 * Encodes an agent as the text of a JSON file. Reading it back gives the same agent.
 *
 * @category encoding
 * @since 0.1.0
 */
export const stringify = (
  agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>
): Result.Result<string, AgentConfigInvalid> =>
  Result.map(Agents.toConfig(agent), (config) => `${JSON.stringify(config, null, 2)}\n`)

const invalid = (reason: string) => new ConfigInvalid({ path: "", reason })

const unreadable = (reason: string) => invalid(`the agent cannot be read: ${reason}`)

/** Converts the document to JSON. The parser has rejected prototype keys. */
const toJson = (value: Yaml.Plain): Json => {
  if (value instanceof Map) return Object.fromEntries(Array.from(value, ([key, item]) => [key, toJson(item)]))
  if (Array.isArray(value)) return value.map(toJson)
  return typeof value === "object" ? null : value
}

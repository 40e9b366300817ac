/**
 * Reads a policy from a YAML file: `deny`, `confirm`, `allow`, `default` and `hide`.
 *
 * A rule is a glob over names, or a mapping of `name`, `where` and `reason`. Reading is bounded whatever the file
 * holds. Unknown keys and patterns that cannot be matched in linear time are rejected with their path, so a misspelt
 * policy never takes effect.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Bounds from "../kit/bounds.ts"
import { nearestKey } from "../kit/fault.ts"
import { shorten, visible } from "../kit/text.ts"
import * as Yaml from "../kit/yaml.ts"
import { ConfigInvalid } from "../KernelError.ts"
import type { Outcome, PolicyShape, Rule, Rules } from "../Policy.ts"
import * as Policy from "../Policy.ts"
import { readText } from "./internal/disk.ts"

export { ConfigInvalid }

/** More than any policy needs; rules are counted later. */
const maxBytes = 256 * 1024

/**
 * Reads rules from YAML text.
 *
 * @example
 * const rules = yield* PolicyFile.parse(`
 * deny:
 *   - name: shell
 *     where: { command: '\\brm\\b' }
 *     reason: nothing is deleted
 * confirm: ["fs_{write,delete}"]
 * default: effects
 * `)
 *
 * @category constructors
 * @since 0.1.0
 */
export const parse: (text: string) => Effect.Effect<Rules, ConfigInvalid> = Effect.fnUntraced(function* (text) {
  const document = Yaml.parse(text, { nodes: Bounds.yamlNodes, depth: Bounds.jsonDepth })
  if (Result.isFailure(document)) return yield* invalid("", `the policy cannot be read: ${document.failure}`)
  return yield* Effect.fromResult(decode(document.success))
})

/**
 * Reads a policy from a file. Errors name the file.
 *
 * @category constructors
 * @since 0.1.0
 */
export const load: (path: string) => Effect.Effect<PolicyShape, ConfigInvalid, FileSystem.FileSystem> =
  Effect.fnUntraced(function* (path) {
    const text = yield* readText(path, "policy", maxBytes)
    const rules = Effect.flatMap(parse(text), (rules) => Effect.fromResult(Policy.rules(rules)))
    return yield* Effect.mapError(rules, (error) => invalid(error.path, `${error.reason} (in '${path}')`))
  })

/**
 * Provides the policy of a file. It combines with others, like those of `Policy.layer`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (path: string): Layer.Layer<never, ConfigInvalid, FileSystem.FileSystem> =>
  Policy.layerShape(load(path))

// ---------------------------------------------------------------- decoding

const invalid = (path: string, reason: string) => new ConfigInvalid({ path, reason })

type Decoded<A> = Result.Result<A, ConfigInvalid>

const refuse = (path: string, reason: string): Decoded<never> =>
  Result.fail(invalid(path, path === "" ? reason : `${path}: ${reason}`))

const decode = (document: Yaml.Plain): Decoded<Rules> =>
  Result.gen(function* () {
    // An empty file is an empty policy.
    const fields = yield* mapping("", document ?? new Map(), ["deny", "confirm", "allow", "default", "hide"])
    return {
      deny: yield* items("deny", fields.get("deny"), rule),
      confirm: yield* items("confirm", fields.get("confirm"), rule),
      allow: yield* items("allow", fields.get("allow"), rule),
      hide: yield* items("hide", fields.get("hide"), text),
      default: yield* fallback(fields.get("default"))
    }
  })

const mapping = (
  path: string,
  value: Yaml.Plain,
  known: ReadonlyArray<string>
): Decoded<ReadonlyMap<string, Yaml.Plain>> => {
  if (!isMapping(value)) return refuse(path, "expected a mapping")
  for (const key of value.keys()) {
    if (!known.includes(key)) return refuse(path, `unknown key '${visible(shorten(key, 60))}'${nearestKey(key, known)}`)
  }
  return Result.succeed(value)
}

const isMapping = (value: Yaml.Plain): value is ReadonlyMap<string, Yaml.Plain> => value instanceof Map

const items = <A>(
  path: string,
  value: Yaml.Plain | undefined,
  item: (path: string, value: Yaml.Plain) => Decoded<A>
): Decoded<ReadonlyArray<A>> => {
  if (value === undefined || value === null) return Result.succeed([])
  if (!Array.isArray(value)) return refuse(path, "expected a list")
  return Result.all(value.map((entry: Yaml.Plain, index) => item(`${path}[${index}]`, entry)))
}

const text = (path: string, value: Yaml.Plain | undefined): Decoded<string> =>
  typeof value === "string" && value !== "" ? Result.succeed(value) : refuse(path, "expected a text")

const rule = (path: string, value: Yaml.Plain): Decoded<Rule> =>
  Result.gen(function* () {
    if (typeof value === "string") return { name: yield* text(path, value) }
    const fields = yield* mapping(path, value, ["name", "where", "reason"])
    const reason = fields.get("reason")
    return {
      name: yield* text(`${path}.name`, fields.get("name")),
      where: yield* conditions(`${path}.where`, fields.get("where")),
      ...(reason === undefined ? {} : { reason: yield* text(`${path}.reason`, reason) })
    }
  })

const conditions = (path: string, value: Yaml.Plain | undefined): Decoded<ReadonlyMap<string, string>> =>
  Result.gen(function* () {
    const found = new Map<string, string>()
    if (value === undefined) return found
    if (!isMapping(value)) return yield* refuse(path, "expected a mapping")
    for (const [argument, source] of value) found.set(argument, yield* text(`${path}.${argument}`, source))
    return found
  })

const fallback = (value: Yaml.Plain = "allow"): Decoded<NonNullable<Rules["default"]>> => {
  if (value === "effects") return Result.succeed("effects")
  if (!isMapping(value)) {
    return Result.mapError(outcome("default", value), ({ path, reason }) =>
      invalid(path, `${reason}; or effects, or one of these for read, idempotent or write`)
    )
  }
  return Result.gen(function* () {
    const fields = yield* mapping("default", value, ["read", "idempotent", "write"])
    return {
      read: yield* outcome("default.read", fields.get("read")),
      idempotent: yield* outcome("default.idempotent", fields.get("idempotent")),
      write: yield* outcome("default.write", fields.get("write"))
    }
  })
}

/** Decodes an outcome. An absent one allows; an empty one is a mistake. */
const outcome = (path: string, value: Yaml.Plain = "allow"): Decoded<Outcome> =>
  value === "allow" || value === "confirm" || value === "deny"
    ? Result.succeed(value)
    : refuse(path, "expected allow, confirm or deny")

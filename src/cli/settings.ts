/**
 * Settings of an agent from flags. A run keeps its settings in its context, so that a command that continues or replays
 * the run needs no flags.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import { isJsonObject, type JsonObject } from "../kit/json.ts"
import type { RunState } from "../RunState.ts"
import { usage } from "./exit.ts"

const text = Schema.optional(Schema.String)

/** The flags of an agent. Stored files and folders are absolute paths. */
export const Settings = Schema.Struct({
  agent: text,
  model: text,
  script: text,
  mcp: text,
  system: text,
  skillsFrom: text,
  skills: Schema.optional(Schema.Boolean),
  code: Schema.optional(Schema.Boolean),
  workspace: text,
  sandbox: Schema.optional(Schema.Boolean),
  plan: Schema.optional(Schema.Boolean),
  yes: Schema.optional(Schema.Boolean),
  maxSteps: Schema.optional(Schema.Int),
  dialect: Schema.optional(Schema.Literals(["blocks", "tools", "auto"]))
})
export type Settings = typeof Settings.Type

const names = [
  "agent",
  "model",
  "script",
  "mcp",
  "system",
  "skillsFrom",
  "skills",
  "code",
  "workspace",
  "sandbox",
  "plan",
  "yes",
  "maxSteps",
  "dialect"
] as const

/** Takes the settings from the flags of a command, with absolute paths. */
export const ofFlags = Effect.fnUntraced(function* (flags: Settings) {
  if (flags.model !== undefined && flags.script !== undefined) {
    return yield* usage("--model and --script cannot be used together")
  }
  if (flags.skills === false && flags.skillsFrom !== undefined) {
    return yield* usage("--no-skills and --skills-from cannot be used together")
  }
  const path = yield* Path.Path
  const absolute = (file: string | undefined) => (file === undefined ? undefined : path.resolve(file))
  const { agent, mcp, script, skillsFrom, workspace } = flags
  return given({
    ...flags,
    agent: absolute(agent),
    script: absolute(script),
    mcp: absolute(mcp),
    skillsFrom: absolute(skillsFrom),
    workspace: absolute(workspace)
  })
})

const given = (settings: Settings): Settings =>
  Object.fromEntries(names.flatMap((name) => (settings[name] === undefined ? [] : [[name, settings[name]]])))

/** Returns the first of these flags that is given. */
export const firstOf = (settings: Settings, among: ReadonlyArray<keyof Settings> = names): string | undefined => {
  const name = among.find((name) => settings[name] !== undefined)
  if (name === undefined) return undefined
  const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  return settings[name] === false ? `--no-${flag}` : `--${flag}`
}

/**
 * Merges new settings over stored ones. A new model replaces the stored one whichever flag named it, and so do new
 * skills.
 */
export const over = (stored: Settings, newer: Settings): Settings => {
  const { model, script, skills, skillsFrom, ...rest } = stored
  const isModelNew = (newer.agent ?? newer.model ?? newer.script) !== undefined
  const areSkillsNew = (newer.skills ?? newer.skillsFrom) !== undefined
  return given({
    ...rest,
    ...(isModelNew ? {} : { model, script }),
    ...(areSkillsNew ? {} : { skills, skillsFrom }),
    ...given(newer)
  })
}

const key = "commandLine"

/** Returns the context of a run that keeps its settings. */
export const contextOf = (settings: Settings): JsonObject => ({ [key]: { ...given(settings) } as JsonObject })

/** Returns the settings of a run, or none if a command did not start it. */
export const ofRun = (state: Pick<RunState, "context"> | undefined): Settings =>
  Option.getOrElse(Schema.decodeUnknownOption(Settings)(state?.context[key]), () => ({}))

/** Returns true if a command started the run. */
export const isOfCommand = ({ context }: Pick<RunState, "context">): boolean => isJsonObject(context[key])

/** Removes the settings from a context, since they are paths and rights of the computer that started the run. */
export const without = (context: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(context).filter(([name, value]) => name !== key || !isJsonObject(value)))

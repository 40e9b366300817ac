/**
 * Decides about the calls of the workspace skills.
 *
 * Reads are allowed, and so are writes, which cannot leave the root. Commands are asked about, unless each command of
 * the line begins with the words of an allowed prefix. A line is read by the grammar of the shell: one with expansions,
 * substitutions, assignments, loops or redirections to files is always asked about. In plan mode, only reads are allowed.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Policy from "../Policy.ts"
import { edit, shell, write } from "./WorkspaceSkills.ts"
import * as Grammar from "./internal/shellGrammar.ts"

/**
 * What a policy allows. It is read before each decision.
 *
 * @category models
 * @since 0.1.0
 */
export interface Rules {
  /** Prefixes of commands that need no question, such as `npm test`. Default: none. */
  readonly allow?: ReadonlyArray<string> | undefined
  /** `plan` allows reads only. Default: `work`. */
  readonly mode?: "plan" | "work" | undefined
}

/**
 * Decides about a call. Calls of other skills are allowed, so that other policies decide about them.
 *
 * @category constructors
 * @since 0.1.0
 */
export const decide = (rules: Rules, call: Policy.PolicyCall): Effect.Effect<Policy.Decision> => {
  if (call.kind !== "skill") return Effect.succeed(Policy.allowed)
  if (rules.mode === "plan" && [write.name, edit.name, shell.name].some((name) => name === call.name)) {
    return Effect.succeed(Policy.denied("nothing is changed in plan mode; say what you would do"))
  }
  return Policy.for(shell, ({ command }) =>
    isAllowed(rules.allow ?? [], command) ? Policy.allowed : Policy.confirm("it runs a command")
  )(call)
}

/**
 * Returns whether each command of a line begins with one of the prefixes.
 *
 * @category getters
 * @since 0.1.0
 */
export const isAllowed = (prefixes: ReadonlyArray<string>, line: string): boolean => {
  const allowed = prefixes.flatMap((prefix) => Grammar.simpleCommands(prefix) ?? [])
  const commands = Grammar.simpleCommands(line)
  return commands !== undefined && commands.every((words) => allowed.some((prefix) => Grammar.hasPrefix(words, prefix)))
}

/**
 * Returns the prefixes by which a person would allow a line and similar ones again: the program and its subcommand. A
 * program that runs others is allowed with these words only. Empty for a line that is always asked about.
 *
 * @category getters
 * @since 0.1.0
 */
export const prefixesOf = (line: string): ReadonlyArray<string> =>
  (Grammar.simpleCommands(line) ?? []).map((words) => Grammar.prefixOf(words).map(Grammar.quoted).join(" "))

/**
 * Adds the policy of a workspace to the existing ones.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E = never, R = never>(
  rules: Rules | Effect.Effect<Rules, E, R> = {}
): Layer.Layer<never, never, R> =>
  Policy.layer((call) =>
    Effect.flatMap(Effect.isEffect(rules) ? rules : Effect.succeed(rules), (read) => decide(read, call))
  )

/**
 * Compiles the rules of a policy, so that a decision is a lookup.
 *
 * `deny` comes before `confirm`, `confirm` before `allow`, and the first matching rule gives the reason. A list in the
 * input matches a restricting rule if one of its items does, and an allowing rule only if all of them do.
 */

import * as Result from "effect/Result"
import { ConfigInvalid } from "../../KernelError.ts"
import type { Decision, Outcome, PolicyCall, PolicyShape, Rule, Rules } from "./decision.ts"
import type { Effects } from "../../Skill.ts"
import type { Json } from "../../kit/json.ts"
import { isJsonObject, requestOf } from "../../kit/json.ts"
import * as Pattern from "../../kit/pattern.ts"

/** The largest number of rules in a policy. */
const maxRules = 1_000

interface Compiled {
  /** Its place among the rules, such as `deny[0]`. */
  readonly path: string
  readonly fitsName: Pattern.Matcher
  readonly where: ReadonlyArray<readonly [argument: string, matches: Pattern.Matcher]>
  readonly reason: string | undefined
}

interface Book {
  readonly deny: ReadonlyArray<Compiled>
  readonly confirm: ReadonlyArray<Compiled>
  readonly allow: ReadonlyArray<Compiled>
  readonly hide: ReadonlyArray<Pattern.Matcher>
}

/** Compiles rules. Fails with the path of the first invalid rule. */
export const compile = (
  rules: Rules
): Result.Result<
  Pick<Required<PolicyShape>, "visible" | "ruleOf"> & { readonly decide: (call: PolicyCall) => Decision },
  ConfigInvalid
> => {
  const spend = Pattern.budget()
  return Result.gen(function* () {
    const book: Book = {
      deny: yield* list("deny", rules.deny ?? [], spend),
      confirm: yield* list("confirm", rules.confirm ?? [], spend),
      allow: yield* list("allow", rules.allow ?? [], spend),
      hide: yield* all((rules.hide ?? []).map((glob, index) => named(`hide[${index}]`, Pattern.glob(glob, spend))))
    }
    if (book.deny.length + book.confirm.length + book.allow.length + book.hide.length > maxRules) {
      return yield* Result.fail(new ConfigInvalid({ path: "", reason: `a policy has at most ${maxRules} rules` }))
    }
    const outcomes = defaults(rules.default ?? "allow")
    const isHidden = (name: string) => book.hide.some((fits) => fits(name))
    return {
      visible: (name: string) => !isHidden(name),
      // A hidden callable cannot be called by guessing its name.
      decide: (call: PolicyCall): Decision =>
        isHidden(call.name) ? { _tag: "Denied", reason: "not available" } : decide(book, outcomes, call),
      ruleOf: (call: PolicyCall) => (isHidden(call.name) ? "hide" : (deciding(book, call)?.rule.path ?? "default"))
    }
  })
}

const list = (path: string, rules: ReadonlyArray<Rule>, spend: Pattern.Budget) =>
  all(rules.map((rule, index) => compileRule(`${path}[${index}]`, rule, spend)))

const compileRule = (path: string, rule: Rule, spend: Pattern.Budget): Result.Result<Compiled, ConfigInvalid> =>
  Result.gen(function* () {
    const entries = rule.where === undefined ? [] : isMap(rule.where) ? [...rule.where] : Object.entries(rule.where)
    return {
      path,
      fitsName: yield* named(`${path}.name`, Pattern.glob(rule.name, spend)),
      where: yield* all(
        entries.map(([argument, source]) =>
          Result.map(
            named(`${path}.where.${argument}`, Pattern.regex(source, spend)),
            (matches) => [argument, matches] as const
          )
        )
      ),
      reason: rule.reason
    }
  })

const isMap = (where: NonNullable<Rule["where"]>): where is ReadonlyMap<string, string> => where instanceof Map

const all = <A>(
  results: ReadonlyArray<Result.Result<A, ConfigInvalid>>
): Result.Result<ReadonlyArray<A>, ConfigInvalid> => Result.all(results)

const named = <A>(path: string, result: Result.Result<A, string>): Result.Result<A, ConfigInvalid> =>
  Result.mapError(result, (reason) => new ConfigInvalid({ path, reason: `${path}: ${reason}` }))

// ---------------------------------------------------------------- deciding

type Outcomes = { readonly [E in Effects]: Outcome }

const defaults = (word: NonNullable<Rules["default"]>): Outcomes => {
  if (typeof word !== "string") return { read: "allow", idempotent: "allow", write: "allow", ...word }
  return word === "effects"
    ? { read: "allow", idempotent: "confirm", write: "confirm" }
    : { read: word, idempotent: word, write: word }
}

/** Returns the first rule that selects a call, and its outcome. */
const deciding = (book: Book, call: PolicyCall): { readonly rule: Compiled; readonly outcome: Outcome } | undefined => {
  const denies = book.deny.find((rule) => fits(rule, call, "some"))
  if (denies !== undefined) return { rule: denies, outcome: "deny" }
  const confirms = book.confirm.find((rule) => fits(rule, call, "some"))
  if (confirms !== undefined) return { rule: confirms, outcome: "confirm" }
  const allows = book.allow.find((rule) => fits(rule, call, "every"))
  return allows === undefined ? undefined : { rule: allows, outcome: "allow" }
}

const decide = (book: Book, outcomes: Outcomes, call: PolicyCall): Decision => {
  const { name } = call
  const found = deciding(book, call)
  const reason = found?.rule.reason
  switch (found?.outcome) {
    case "deny":
      return { _tag: "Denied", reason: reason ?? `'${name}' is denied by a rule` }
    case "confirm":
      return { _tag: "Confirm", reason: reason ?? `'${name}' has to be confirmed` }
    case "allow":
      return reason === undefined ? allowed : { _tag: "Allowed", reason }
  }
  switch (outcomes[call.effects]) {
    case "allow":
      return allowed
    case "confirm":
      return { _tag: "Confirm", reason: `'${name}' has to be confirmed` }
    case "deny":
      return { _tag: "Denied", reason: `no rule allows '${name}'` }
  }
}

const allowed: Decision = { _tag: "Allowed" }

const fits = (rule: Compiled, call: PolicyCall, items: "some" | "every"): boolean =>
  rule.fitsName(call.name) &&
  rule.where.every(([argument, matches]) => {
    const value = argumentOf(call, argument)
    return value !== undefined && fitsValue(value, matches, items)
  })

/**
 * Returns an argument of a call. The request of a protocol is one text, even if a native call wraps it; its argument is
 * `request`.
 */
const argumentOf = ({ input, kind }: PolicyCall, argument: string): Json | undefined => {
  if (argument === "request" && (kind === "protocol" || !isJsonObject(input))) return requestOf(input)
  return isJsonObject(input) && Object.hasOwn(input, argument) ? input[argument] : undefined
}

const fitsValue = (value: Json, matches: Pattern.Matcher, items: "some" | "every"): boolean => {
  if (typeof value === "string") return matches(value)
  if (!Array.isArray(value)) return matches(JSON.stringify(value))
  return items === "some"
    ? value.some((item: Json) => fitsValue(item, matches, items))
    : value.length > 0 && value.every((item: Json) => fitsValue(item, matches, items))
}

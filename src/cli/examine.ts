/**
 * Looks around: Node.js, keys, optional packages.
 */

import * as Effect from "effect/Effect"
import { findKey } from "../provider/internal/configured.ts"
import { variables as google } from "../provider/internal/google.ts"
import { hosts } from "../provider/OpenAiCompatibleProvider.ts"
import { Codes, CommandFailed } from "./exit.ts"
import { paint } from "./pen.ts"
import { Screen } from "./screen.ts"
import * as Text from "./terminalText.ts"

/** One thing that was looked at. */
export interface Finding {
  readonly area: "system" | "provider" | "package"
  readonly name: string
  readonly state: "ok" | "missing" | "wrong"
  readonly about: string
}

/** Prints what is found. Fails when kernai cannot work here. */
export const examine = Effect.fnUntraced(function* (asJson: boolean) {
  const screen = yield* Screen
  const findings = [
    ofNode(process.versions.node),
    ...(yield* Effect.forEach(providers, key)),
    ...packages.map(installed)
  ]
  screen.out(asJson ? `${Text.json(findings)}\n` : table(findings, screen.colors))
  const wrong = findings.find((finding) => finding.state === "wrong")
  if (wrong !== undefined) {
    return yield* new CommandFailed({ code: Codes.failed, reason: `${wrong.name}: ${wrong.about}` })
  }
})

const oldest = [22, 19] as const

/** Judges a version of Node.js. */
export const ofNode = (version: string): Finding => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  const isGood = major > oldest[0] || (major === oldest[0] && minor >= oldest[1])
  return {
    area: "system",
    name: `Node.js ${version}`,
    state: isGood ? "ok" : "wrong",
    about: isGood ? "" : `kernai needs ${oldest.join(".")} or later`
  }
}

/** What each provider needs: of every list, one variable. */
const providers: ReadonlyArray<readonly [provider: string, ...needs: ReadonlyArray<ReadonlyArray<string>>]> = [
  ["anthropic", ["ANTHROPIC_API_KEY"]],
  ["openai", ["OPENAI_API_KEY"]],
  ["google", google],
  ["azure", ["AZURE_API_KEY"], ["AZURE_RESOURCE_NAME", "AZURE_BASE_URL"]],
  ...Array.from(hosts, ([provider, host]) => [provider, [host.variable]] as const)
]

const key = Effect.fnUntraced(function* ([name, ...needs]: (typeof providers)[number]): Effect.fn.Return<Finding> {
  const missing = yield* Effect.filter(needs, (variables) =>
    Effect.map(findKey(variables), (found) => found === undefined)
  )
  const told = (needs: ReadonlyArray<ReadonlyArray<string>>, what: string) =>
    needs.map((variables) => `${variables.join(" or ")} ${what}`).join(", ")
  return missing.length === 0
    ? { area: "provider", name, state: "ok", about: told(needs, "is set") }
    : { area: "provider", name, state: "missing", about: told(missing, "is not set") }
})

const packages: ReadonlyArray<readonly [name: string, purpose: string]> = [
  ["@effect/sql-pg", "runs kept in PostgreSQL"],
  ["liquidjs", "prompts written as Liquid templates"]
]

const installed = ([name, purpose]: (typeof packages)[number]): Finding => {
  try {
    import.meta.resolve(name)
    return { area: "package", name, state: "ok", about: purpose }
  } catch {
    return { area: "package", name, state: "missing", about: `optional, for ${purpose}` }
  }
}

const table = (findings: ReadonlyArray<Finding>, colors: boolean): string => {
  const width = Math.max(...findings.map(({ name }) => name.length))
  const tones = { ok: "good", missing: "quiet", wrong: "bad" } as const
  return findings
    .map(({ about, name, state }) =>
      `${paint(state.padEnd(8), tones[state], { colors })} ${name.padEnd(width)}  ${about}`.trimEnd()
    )
    .concat("ollama needs no key; 'kernai run' needs none either", "")
    .join("\n")
}

/**
 * Examines this computer: Node.js, provider keys, optional packages.
 */

import * as Effect from "effect/Effect"
import { findKey } from "../kit/variables.ts"
import { variables as google } from "../provider/GeminiProvider.ts"
import { hosts, locals } from "../provider/OpenAiCompatibleProvider.ts"
import { failed } from "./exit.ts"
import { Screen } from "./screen.ts"
import { type Column, table } from "./table.ts"
import * as Text from "./terminalText.ts"

/** One finding. */
interface Finding {
  readonly area: "system" | "provider" | "package"
  readonly name: string
  readonly state: "ok" | "missing" | "wrong"
  readonly about: string
}

/** Prints the findings. Fails if kernai cannot work here. */
export const examine = Effect.fnUntraced(function* (asJson: boolean) {
  const screen = yield* Screen
  const findings = [
    nodeFinding(process.versions.node),
    ...(yield* Effect.forEach(providers, providerFinding)),
    ...packages.map(packageFinding)
  ]
  screen.out(asJson ? `${Text.json(findings)}\n` : textOf(findings, screen.answers))
  const wrong = findings.find((finding) => finding.state === "wrong")
  if (wrong !== undefined) return yield* failed(`${wrong.name}: ${wrong.about}`)
})

const oldest = [22, 19] as const

/** Returns the finding for a version of Node.js. */
export const nodeFinding = (version: string): Finding => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  const isSupported = major > oldest[0] || (major === oldest[0] && minor >= oldest[1])
  return {
    area: "system",
    name: `Node.js ${version}`,
    state: isSupported ? "ok" : "wrong",
    about: isSupported ? "" : `kernai needs ${oldest.join(".")} or later`
  }
}

/** The variables that each provider needs: one of every list. */
export const providers: ReadonlyArray<readonly [provider: string, ...needs: ReadonlyArray<ReadonlyArray<string>>]> = [
  ["anthropic", ["ANTHROPIC_API_KEY"]],
  ["openai", ["OPENAI_API_KEY"]],
  ["google", google],
  ["google-interactions", google],
  ["vertex", ["GOOGLE_VERTEX_PROJECT", "GOOGLE_VERTEX_API_KEY"]],
  ["bedrock", ["AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID"], ["AWS_REGION", "AWS_DEFAULT_REGION"]],
  ["azure", ["AZURE_API_KEY"], ["AZURE_RESOURCE_NAME", "AZURE_BASE_URL"]],
  ...Array.from(hosts, ([provider, host]) => [provider, [host.variable]] as const)
]

/** Local providers, which need no key. */
export const keyless: ReadonlyArray<string> = ["ollama", ...locals.keys()]

const providerFinding = Effect.fnUntraced(function* ([
  name,
  ...needs
]: (typeof providers)[number]): Effect.fn.Return<Finding> {
  const missing = yield* Effect.filter(needs, (names) => Effect.map(findKey(names), (key) => key === undefined))
  const list = (needs: ReadonlyArray<ReadonlyArray<string>>, what: string) =>
    needs.map((names) => `${names.join(" or ")} ${what}`).join(", ")
  return missing.length === 0
    ? { area: "provider", name, state: "ok", about: list(needs, "is set") }
    : { area: "provider", name, state: "missing", about: list(missing, "is not set") }
})

const packages: ReadonlyArray<readonly [name: string, purpose: string]> = [
  ["@effect/sql-pg", "runs stored in PostgreSQL"],
  ["liquidjs", "prompts written as Liquid templates"],
  ["quickjs-emscripten-core", "programs that a model writes"],
  ["@jitl/quickjs-ng-wasmfile-release-sync", "programs that a model writes"]
]

const packageFinding = ([name, purpose]: (typeof packages)[number]): Finding => {
  try {
    import.meta.resolve(name)
    return { area: "package", name, state: "ok", about: purpose }
  } catch {
    return { area: "package", name, state: "missing", about: `optional, for ${purpose}` }
  }
}

const tones = { ok: "good", missing: "quiet", wrong: "bad" } as const

const textOf = (findings: ReadonlyArray<Finding>, look: Text.Look): string => {
  const columns: ReadonlyArray<Column<Finding>> = [
    { title: "", cell: ({ state }) => state, tone: ({ state }) => tones[state] },
    { title: "", cell: ({ name }) => name },
    { title: "", cell: ({ about }) => about }
  ]
  // Hints are for pasting, so nothing is cut.
  const rows = table(columns, findings, { ...look, columns: Infinity })
  return `${rows}${keyless.join(", ")} need no key; 'kernai run' needs none either\n`
}

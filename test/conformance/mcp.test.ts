/**
 * mcp.json: requests and their answers, transports by their entries, variables in texts (BP-172 to BP-178).
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Result } from "effect"
import * as Yaml from "effect/encoding/Yaml"
import { McpConfig, McpProtocol } from "kernai/mcp"
import { catalog, file } from "../support/mcp/recorded.ts"
import { about, only, tally } from "../support/vectors.ts"

/** What JSON calls wrong is each reader's own word; what looks like a tool is explained in ours. */
const own = /^(invalid MCP request JSON: |unknown MCP method: \S+)/

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The texts among the values of a document, by their paths. Keys are not values. */
const texts = (value: unknown, path = ""): ReadonlyArray<readonly [path: string, text: string]> => {
  if (typeof value === "string") return [[path, value]]
  if (Array.isArray(value)) return value.flatMap((item, index) => texts(item, `${path}/${index}`))
  return isRecord(value) ? Object.entries(value).flatMap(([key, item]) => texts(item, `${path}/${key}`)) : []
}

/** A text as a server's argument holds it, once its variables are in place. */
const expanded = (text: string, env: { readonly [name: string]: string }) =>
  Effect.map(McpConfig.fromValue({ servers: { it: { command: "x", args: [text] } } }, { env }), ({ servers }) => {
    const server = servers.get("it")
    const word = server?.transport === "stdio" ? server.args[0] : undefined
    return Redacted.isRedacted(word) ? Redacted.value(word) : word
  })

/** An entry of ours: what it says stands, whatever its address looks like. */
const short: (typeof file.config)[number] = {
  detect: { transport: "http", url: "https://example.com/sse" },
  transport: "http"
}

const parsed = (text: string) => Result.try({ try: (): unknown => Yaml.parse(text), catch: () => "unreadable" })

describe("mcp.json", () => {
  const counted = tally("mcp")
  only("mcp", file, {
    vectors: [{ ...about, request: true, result: true, error: { class: true, message: true }, client_calls: true }],
    // Entries of other kinds are skipped, and counted.
    config: true,
    env_expansion: [{ ...about, env: true, text: true, expanded: true }],
    seed: {
      tools: [{ name: true, description: true, schema: true, output_schema: true, annotations: true, server: true }],
      resources: [{ uri: true, name: true, description: true, mimeType: true, server: true }],
      prompts: [{ name: true, description: true, arguments: true, server: true }],
      tool_results: true
    },
    servers: true
  })

  for (const vector of file.vectors) {
    it.effect(`${vector.id}: ${vector.request.slice(0, 80)}`, () =>
      Effect.gen(function* () {
        counted.ran()
        const calls: Array<unknown> = []
        const answer = yield* Effect.result(McpProtocol.answer(catalog(calls), vector.request))
        if (vector.client_calls !== undefined) assert.deepStrictEqual(calls, vector.client_calls)
        if (vector.error !== undefined) {
          assert(Result.isFailure(answer))
          const expected = vector.error.message
          const same = own.exec(expected)?.[1]
          if (same === undefined) assert.strictEqual(answer.failure.message, expected)
          else assert.isTrue(answer.failure.message.startsWith(same))
        } else {
          assert(Result.isSuccess(answer))
          assert.strictEqual(McpProtocol.textOf(answer.success), vector.result)
        }
      })
    )
  }

  for (const [index, entry] of [...file.config, short].entries()) {
    const { detect, disputed, transport } = entry
    const id = `config ${index}`
    if (detect === undefined || transport === undefined) {
      counted.skip(`${id}: ${Object.keys(entry).join(", ")}`)
      continue
    }
    it.effect(`${id}: ${JSON.stringify(detect)} is ${transport}`, () =>
      Effect.gen(function* () {
        counted.ran()
        // A transport that is given stands, and "http" is the long name's short form (BP-171).
        const given = detect.transport
        const found =
          given === undefined
            ? McpConfig.inferTransport(detect)
            : (yield* McpConfig.fromValue({ servers: { it: detect } }, { env: {} })).servers.get("it")?.transport
        const wanted = transport === "http" ? "streamable_http" : transport
        // What is disputed is the letters "sse" where they are no segment of the path (W-17).
        assert.strictEqual(found, disputed === undefined ? wanted : "streamable_http")
      })
    )
  }

  for (const [index, { disputed, env, expanded: recorded, text }] of file.env_expansion.entries()) {
    it.effect(`variables ${index}: ${JSON.stringify(text)}`, () =>
      Effect.gen(function* () {
        counted.ran()
        const before = parsed(text)
        const after = parsed(recorded)
        assert(Result.isSuccess(before))
        const known = new Map(Result.isSuccess(after) ? texts(after.success) : [])
        for (const [path, value] of texts(before.success)) {
          const asked = Array.from(value.matchAll(/\$\{([A-Z0-9_]+)\}/g), (match) => match[1] ?? "")
          const unset = asked.find((name) => (env[name] ?? "") === "")
          const result = yield* Effect.result(expanded(value, env))
          if (unset !== undefined) {
            // An unset variable is an error that names it, not an empty text (W-16).
            assert(Result.isFailure(result))
            assert.include(result.failure.message, unset)
            continue
          }
          assert(Result.isSuccess(result))
          // A value never becomes structure: where it did, and where that is disputed, it stays the text it is.
          const isPlain = asked.every((name) => /^[\w./-]+$/.test(env[name] ?? ""))
          const whole = value.replace(/\$\{([A-Z0-9_]+)\}/g, (_, name: string) => env[name] ?? "")
          assert.strictEqual(result.success, whole)
          if (disputed === undefined && isPlain && known.has(path)) assert.strictEqual(result.success, known.get(path))
        }
      })
    )
  }

  counted.report()
})

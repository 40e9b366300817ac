/**
 * Examines a config of MCP servers and reports the problems of each.
 *
 * For every server, its entry is decoded, its program and folder are looked up, and its tools are listed over a
 * connection. No tool is called, and no finding holds a secret.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type { HttpClient } from "effect/http/HttpClient"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { quote, shorten } from "../kit/text.ts"
import type { ConfigInvalid, McpError } from "../KernelError.ts"
import * as McpConfig from "./McpConfig.ts"
import * as McpConnection from "./McpConnection.ts"
import { isHttp, loadsCode, networkVariables } from "./internal/serverEntry.ts"
import * as OAuth from "./OAuth.ts"
import { layerMemory, TokenStore } from "./TokenStore.ts"

/**
 * A finding about one server, or about the config as a whole.
 *
 * @category models
 * @since 0.1.0
 */
export interface Finding {
  /** Undefined for the config itself. */
  readonly server: string | undefined
  readonly state: "ok" | "warning" | "wrong"
  readonly detail: string
  /** A suggestion how to fix it. */
  readonly advice: string | undefined
}

type Platform = ChildProcessSpawner | HttpClient | FileSystem.FileSystem | Path.Path

/**
 * Examines a config in YAML. Never fails: an error is a finding.
 *
 * @category running
 * @since 0.1.0
 */
export const examine = Effect.fnUntraced(function* (
  text: string,
  options?: McpConfig.Options
): Effect.fn.Return<ReadonlyArray<Finding>, never, Platform> {
  const decoded = yield* Effect.result(McpConfig.inspectYaml(text, options))
  if (Result.isFailure(decoded)) return [entryFinding(undefined, decoded.failure)]
  const findings = yield* Effect.forEach(
    decoded.success,
    ([name, server]) =>
      Result.isFailure(server) ? Effect.succeed([entryFinding(name, server.failure)]) : examineServer(server.success),
    { concurrency: 4 }
  )
  return findings.flat()
})

const examineServer = Effect.fnUntraced(function* (
  server: McpConfig.McpServer
): Effect.fn.Return<ReadonlyArray<Finding>, never, Platform> {
  if (server.transport !== "stdio") return yield* connect(server)
  const missing = yield* findProgram(server)
  const found = missing === undefined ? yield* connect(server) : [missing]
  return [...found, ...shellWords(server), ...loadedCode(server)]
})

/** Warns of variables that make a program load code which its command does not name. */
const loadedCode = ({ env, name }: McpConfig.StdioServer): ReadonlyArray<Finding> =>
  Object.keys(env)
    .filter(loadsCode)
    .map((variable) =>
      finding(
        name,
        "warning",
        `the variable ${JSON.stringify(variable)} in 'env' makes the program load code that 'command' does not name`,
        "Remove it unless you wrote it yourself."
      )
    )

const connect = Effect.fnUntraced(function* (server: McpConfig.McpServer) {
  const { name, transport } = server
  const tokens = yield* Effect.serviceOption(TokenStore)
  const make = isHttp(server) ? OAuth.make(server) : Effect.undefined
  const oauth = yield* Option.isSome(tokens)
    ? Effect.provideService(make, TokenStore, tokens.value)
    : Effect.provide(make, layerMemory)
  const connection = yield* McpConnection.make(server, { credentials: oauth?.credentials })
  const asked = yield* Effect.result(Effect.all([connection.info, connection.tools, connection.skippedTools]))
  if (Result.isFailure(asked)) {
    return [finding(name, "wrong", asked.failure.message, serverAdvice(server, asked.failure))]
  }
  const [info, tools, skippedTools] = asked.success
  const program = [info.name ?? "a server without a name", info.version ?? ""].join(" ").trim()
  const detail = `${program}, ${transport}, revision ${info.protocolVersion}, ${tools.length} tools`
  const found = [finding(name, "ok", detail)]
  if (tools.length === 0 && "tools" in info.capabilities) {
    found.push(finding(name, "warning", "it announces tools, but lists none that can be used"))
  }
  for (const [why, entries] of Map.groupBy(skippedTools, ([, why]) => why)) {
    const names = entries.map(([tool]) => quote(shorten(tool, 60))).join(", ")
    found.push(finding(name, "warning", `it has tools that are left out (${names}): ${why}`))
  }
  return found
}, Effect.scoped)

/** Looks up the folder and the program, which the system reports with the same error code. */
const findProgram = Effect.fnUntraced(function* ({ command, cwd, env, name, written }: McpConfig.StdioServer) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const exists = (file: string) => Effect.orElseSucceed(fs.exists(file), () => false)
  if (cwd !== undefined && !(yield* exists(cwd))) {
    return finding(name, "wrong", `the folder '${written.cwd}' in 'cwd' of MCP server '${name}' does not exist`)
  }
  const isPath = /[/\\]/.test(command)
  const isWindows = path.sep === "\\"
  const search = env["PATH"] === undefined ? (process.env["PATH"] ?? "") : Redacted.value(env["PATH"])
  const folders = isPath ? [cwd ?? "."] : search.split(isWindows ? ";" : ":")
  for (const folder of folders) {
    for (const ending of isWindows ? ["", ".exe", ".cmd"] : [""]) {
      if (yield* exists(path.resolve(folder, `${command}${ending}`))) return undefined
    }
  }
  const where = isPath ? "does not exist" : "is not found in PATH"
  const detail = `the program '${written.command}' of MCP server '${name}' ${where}`
  return finding(name, "wrong", detail, "Install it, or write its path in full.")
})

/** Warns of words that only a shell would interpret. */
const shellWords = ({ args, name }: McpConfig.StdioServer): ReadonlyArray<Finding> =>
  args
    .filter((word) => !Redacted.isRedacted(word) && /^~(?:\/|$)|\$\(|\$[A-Za-z_]|^(?:&&|\|\||[|;<>])$/.test(word))
    .map((word) =>
      finding(
        name,
        "warning",
        `the argument ${JSON.stringify(word)} reaches the program unchanged: it does not pass through a shell`,
        "Write paths in full, and variables as ${NAME} in capitals."
      )
    )

const finding = (server: string | undefined, state: Finding["state"], detail: string, advice?: string): Finding => ({
  server,
  state,
  detail,
  advice
})

const entryFinding = (server: string | undefined, { reason }: ConfigInvalid): Finding =>
  finding(server, "wrong", reason, entryAdvice(reason))

const entryAdvice = (reason: string): string | undefined => {
  const variable = /asks for \$\{([A-Z0-9_]+)\}/.exec(reason)?.[1]
  if (variable !== undefined) return `Set ${variable} in the environment, or write its value.`
  if (reason.includes("missing 'command'")) return "Write the program and its arguments, as in: command: node server.js"
  if (reason.includes("missing 'url'")) return "Write the address, as in: url: https://example.com/mcp"
  if (reason.startsWith("unknown MCP transport")) return "Use stdio, streamable_http (also written http) or sse."
  if (reason.includes("must declare at least one server")) return "Begin with 'servers:' and name each server below it."
  return undefined
}

const serverAdvice = (server: McpConfig.McpServer, { reason }: McpError): string | undefined =>
  reason === "needs_sign_in"
    ? `Sign in: kernai mcp sign-in ${server.name}. Or send a key in 'headers'.`
    : [advice[reason]?.[isHttp(server) ? "remote" : "local"] ?? [], proxyAdvice(server)].flat().join(" ") || undefined

/** Returns advice about a proxy that the process of a server does not inherit. */
const proxyAdvice = (server: McpConfig.McpServer): ReadonlyArray<string> =>
  server.transport === "stdio" &&
  !server.inheritNetwork &&
  networkVariables.some((name) => /_proxy$/i.test(name) && (process.env[name] ?? "") !== "")
    ? ["If it needs the proxy of this computer, set 'inheritNetwork: true'."]
    : []

const start = "Start it by hand: it should wait for input and print nothing."
const slow = "If it is only slow, raise 'connectTimeout'."
const away = { local: start, remote: "Is the server running, and are host and port right?" }
const version = "Set 'protocolVersion' to one the server knows, or update the server."
const other = {
  local: "This may not be an MCP server.",
  remote: "Is this the address of its MCP endpoint? Most end in /mcp, older ones in /sse."
}

const advice: { readonly [reason in McpError["reason"]]?: typeof other } = {
  connect: away,
  disconnected: away,
  timeout: { local: `${start} ${slow}`, remote: slow },
  version: { local: version, remote: version },
  protocol: other,
  remote: other
}

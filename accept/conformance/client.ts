/**
 * The client that the official conformance suite examines: `client.ts <url>`, with the scenario in
 * `MCP_CONFORMANCE_SCENARIO` and what it hands over in `MCP_CONFORMANCE_CONTEXT`.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { McpConfig, McpConnection, OAuth, TokenStore } from "../../src/mcp/index.ts"
import type * as Skill from "../../src/Skill.ts"

const url = process.argv.at(-1) ?? ""
const scenario = process.env["MCP_CONFORMANCE_SCENARIO"] ?? ""
const context: unknown = JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}")
const given = (key: string): string | undefined => {
  const value: unknown = typeof context === "object" && context !== null ? Reflect.get(context, key) : undefined
  return typeof value === "string" ? value : undefined
}

/** The document by which a client of a web address introduces itself. */
const document = "https://conformance-test.local/client-metadata.json"

const oauthOf = () => {
  const id = given("client_id") ?? (scenario === "auth/basic-cimd" ? document : undefined)
  const secret = given("client_secret")
  const privateKey = given("private_key_pem")
  return {
    ...(id === undefined ? {} : { clientId: id }),
    ...(secret === undefined ? {} : { clientSecret: secret }),
    ...(privateKey === undefined ? {} : { privateKey }),
    ...(scenario.startsWith("auth/client-credentials") ? { grant: "client_credentials" } : {})
  }
}

/** A person who allows everything: the page redirects at once. */
const browser = (address: string) => Effect.promise(() => fetch(address).then((answer) => answer.text()))

const accepts = (): Effect.Effect<Skill.Reply> => Effect.succeed({ _tag: "Accepted", values: {} })

const inputs: { readonly [tool: string]: { readonly [key: string]: unknown } } = { add_numbers: { a: 5, b: 3 } }

const program = Effect.gen(function* () {
  const config = yield* McpConfig.fromValue({ servers: { conformance: { url, oauth: oauthOf() } } })
  const server = config.servers.get("conformance")
  if (server === undefined || server.transport === "stdio") return yield* Effect.die("no server")
  const oauth = yield* OAuth.make(server, { show: browser })
  const connection = yield* McpConnection.make(server, { credentials: oauth.credentials, host: { elicit: accepts } })
  const signedIn = <A, E>(request: Effect.Effect<A, E>) =>
    Effect.catchIf(
      request,
      (error) => String(Reflect.get(Object(error), "reason")) === "needs_sign_in",
      () => Effect.andThen(oauth.signIn(browser), request)
    )
  yield* signedIn(connection.info)
  const tools = yield* signedIn(connection.tools)
  for (const { name } of tools) yield* signedIn(connection.callTool(name, inputs[name] ?? {}))
}).pipe(
  Effect.scoped,
  Effect.provide(Layer.mergeAll(NodeServices.layer, FetchHttpClient.layer, TokenStore.layerMemory))
)

NodeRuntime.runMain(program)

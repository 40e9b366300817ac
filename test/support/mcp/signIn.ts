/** Connections that sign in, and a person at a browser. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { McpConfig, McpConnection, OAuth } from "kernai/mcp"
import * as Authorization from "./authorization.ts"
import * as Support from "./connect.ts"

export const prepare = Effect.fnUntraced(function* (
  url: string,
  oauth: { readonly [key: string]: unknown } = {},
  options?: OAuth.Options
) {
  const config = yield* McpConfig.fromValue({ servers: { it: { url, oauth } } })
  const server = config.servers.get("it")
  assert(server?.transport === "streamable_http")
  const auth = yield* OAuth.make(server, options)
  return { auth, connection: yield* McpConnection.make(server, { credentials: auth.credentials }) }
})

export const write = (connection: McpConnection.McpConnection) =>
  Effect.map(connection.callTool("write", {}), Support.textOf)

/** Somebody at a browser, and the scopes that were asked for there. */
export const person = (visit: (url: string) => Effect.Effect<unknown> = Authorization.browse) => {
  const asked: Array<string | null> = []
  const show = (url: string) => {
    asked.push(new URL(url).searchParams.get("scope"))
    return visit(url)
  }
  return { asked, show }
}

export const isRenewal = ({ body }: { readonly body: string }) => body.startsWith("grant_type=refresh_token")

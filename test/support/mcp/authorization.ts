/** A small MCP server that is guarded, and the authorization server that guards it, on one origin. */
import { Effect } from "effect"
import { createHash, randomUUID } from "node:crypto"
import * as Http from "./httpServer.ts"

/** What the authorization server knows, and how it answers. */
export class Guard {
  readonly notebook = new Http.Notebook()
  readonly codes = new Map<string, URLSearchParams>()
  readonly clients = new Map<string, { readonly redirect_uris: ReadonlyArray<string> }>()
  readonly tokens = new Set<string>()
  /** The scopes a tool needs, or a method that names none, each told as it stands here to who asks with less. */
  readonly needs = new Map<string, string>()
  /** What a token of the moment allows. */
  readonly allows = new Map<string, ReadonlyArray<string>>()
  /** What is allowed of what was asked for. */
  allow: (scopes: ReadonlyArray<string>) => ReadonlyArray<string> = (scopes) => scopes
  readonly refreshTokens = new Set<string>()
  refreshed = 0
  expiresIn: number | undefined = 3600
  /** The status it says with that it knows a client now. */
  registration = 201
  /** The status it refuses a refresh token with. */
  refusal = 400
  /** Where the MCP server is described. */
  describedAt = "/.well-known/oauth-protected-resource/mcp"
  /** Changes a document or an answer before it is sent, by its path. */
  readonly changes = new Map<string, (body: Record<string, unknown>) => unknown>()
  /** What the browser is sent back with. */
  back: (parameters: URLSearchParams) => void = () => {}
}

const challenge = (origin: string, { describedAt }: Guard) =>
  `Bearer resource_metadata="${origin}${describedAt}", scope="mcp:use"`

/** Starts both. */
export const serve = (guard: Guard) => {
  const small = Http.mcp(guard.notebook)
  return Http.serve((request, response) => {
    const url = new URL(request.path, `http://${request.headers.host}`)
    const send = (status: number, body: Record<string, unknown>) => {
      const changed = guard.changes.get(url.pathname)?.(body) ?? body
      return Http.json(response, status, changed)
    }
    switch (url.pathname) {
      case "/mcp": {
        const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1]
        if (token === undefined || !guard.tokens.has(token)) {
          return Http.json(response, 401, {}, { "www-authenticate": challenge(url.origin, guard) })
        }
        const asked = /"name":"(\w+)"/.exec(request.body) ?? /"method":"([\w/]+)"/.exec(request.body)
        const needed = guard.needs.get(asked?.[1] ?? "")
        if (needed?.split(/ +/).every((scope) => guard.allows.get(token)?.includes(scope)) ?? true) {
          return small(request, response)
        }
        const lacked = `Bearer error="insufficient_scope", scope="${needed}", error_description="ask for more"`
        return Http.json(response, 403, {}, { "www-authenticate": lacked })
      }
      case guard.describedAt:
        return send(200, { resource: `${url.origin}/mcp`, authorization_servers: [`${url.origin}/as`] })
      case "/.well-known/oauth-authorization-server/as":
        return send(200, {
          issuer: `${url.origin}/as`,
          authorization_endpoint: `${url.origin}/authorize?tenant=1`,
          token_endpoint: `${url.origin}/token`,
          registration_endpoint: `${url.origin}/register`,
          code_challenge_methods_supported: ["plain", "S256"],
          response_types_supported: ["code"],
          authorization_response_iss_parameter_supported: true
        })
      case "/register": {
        const client = randomUUID()
        guard.clients.set(client, JSON.parse(request.body))
        return send(guard.registration, { client_id: client })
      }
      case "/authorize": {
        const asked = url.searchParams
        const known = guard.clients.get(asked.get("client_id") ?? "")?.redirect_uris
        const redirect = asked.get("redirect_uri") ?? ""
        if (known !== undefined && !known.includes(redirect)) return send(400, { error: "invalid_redirect_uri" })
        const code = randomUUID()
        guard.codes.set(code, asked)
        const back = new URL(redirect)
        back.searchParams.set("code", code)
        back.searchParams.set("state", asked.get("state") ?? "")
        back.searchParams.set("iss", `${url.origin}/as`)
        guard.back(back.searchParams)
        return void response.writeHead(302, { location: back.href }).end()
      }
      case "/token": {
        const form = new URLSearchParams(request.body)
        const grant = form.get("grant_type")
        let allowed: ReadonlyArray<string> = []
        if (grant === "authorization_code") {
          const asked = guard.codes.get(form.get("code") ?? "")
          guard.codes.delete(form.get("code") ?? "")
          const proof = createHash("sha256")
            .update(form.get("code_verifier") ?? "")
            .digest("base64url")
          const fits =
            asked?.get("code_challenge") === proof &&
            /^[\w.~-]{43,128}$/.test(form.get("code_verifier") ?? "") &&
            asked.get("redirect_uri") === form.get("redirect_uri") &&
            asked.get("resource") === form.get("resource")
          if (!fits) return send(400, { error: "invalid_grant" })
          allowed = guard.allow(asked.get("scope")?.split(" ") ?? [])
        } else if (!guard.refreshTokens.delete(form.get("refresh_token") ?? "")) {
          return send(guard.refusal, { error: "invalid_grant", error_description: form.get("refresh_token") })
        } else {
          guard.refreshed++
          allowed = [...guard.allows.values()].at(-1) ?? []
        }
        const [access, refresh] = [`access-${randomUUID()}`, `refresh-${randomUUID()}`]
        guard.tokens.clear()
        guard.tokens.add(access)
        guard.allows.set(access, allowed)
        guard.refreshTokens.add(refresh)
        return send(200, {
          access_token: access,
          token_type: grant === "refresh_token" ? "bearer" : "Bearer",
          refresh_token: refresh,
          ...(guard.expiresIn === undefined ? {} : { expires_in: guard.expiresIn })
        })
      }
      default:
        return send(404, { error: "not_found" })
    }
  })
}

/** Does what a person with a browser would. */
export const browse = (url: string) =>
  Effect.promise(async () => {
    const asked = await fetch(url, { redirect: "manual" })
    const back = await fetch(asked.headers.get("location") ?? "", { redirect: "manual" })
    await back.text()
  })

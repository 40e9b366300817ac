/**
 * Lists and calls the tools of MCP servers, accepts tools that changed, and signs in.
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Content from "../../Content.ts"
import { plain } from "../../kit/json.ts"
import type { McpConfig } from "../../mcp/McpConfig.ts"
import { McpHub, type Options, type ServerStatus } from "../../mcp/McpHub.ts"
import * as McpProtocol from "../../mcp/McpProtocol.ts"
import * as ProtocolRegistry from "../../ProtocolRegistry.ts"
import * as SkillRegistry from "../../SkillRegistry.ts"
import type { ApproveFlags, CallFlags } from "../commands/mcpFlags.ts"
import { asFailure, failed, usage } from "../exit.ts"
import { Screen, type Shape } from "../screen.ts"
import { type Column, table } from "../table.ts"
import * as Text from "../terminalText.ts"
import * as Servers from "./servers.ts"

/** Runs an effect with the servers of a config connected. */
const withServers = <A, E extends { readonly _tag: string; readonly message: string }, R>(
  file: string,
  config: McpConfig,
  use: Effect.Effect<A, E, R | McpHub>,
  options?: Options
) => {
  const registries = Layer.merge(SkillRegistry.layer(), ProtocolRegistry.layer())
  return use.pipe(
    Effect.provide(Servers.layer(file, config, { ...options, protocol: false }).pipe(Layer.provide(registries))),
    Effect.mapError(asFailure)
  )
}

/** Lists the servers of a config, or one of them, with their tools. Fails if one is not available. */
export const list = Effect.fnUntraced(function* (file: string, server: string | undefined, asJson: boolean) {
  const screen = yield* Screen
  const config = yield* server === undefined ? Servers.read(file) : Servers.readOne(file, server)
  const connected = McpHub.use((hub) => Effect.all([hub.status, hub.catalog.tools(undefined)]))
  const [servers, tools] = yield* withServers(file, config, connected)
  const toolsOf = (name: string) => tools.filter((tool) => tool.server === name)
  if (asJson) {
    const listed = servers.map((server) => ({
      ...server,
      problem: server.problem?.message ?? null,
      skills: Object.fromEntries(server.skills),
      tools: toolsOf(server.name)
    }))
    screen.out(`${Text.json(plain(listed))}\n`)
  } else {
    for (const server of servers) {
      screen.out(`${Text.paint(Text.flat(server.name), "title", screen.answers)}  ${stateOf(server)}\n`)
      listTools(screen, toolsOf(server.name))
      listHidden(screen, server)
    }
  }
  const away = servers.filter(({ problem }) => problem !== undefined).map(({ name }) => Text.flat(name))
  if (away.length > 0) return yield* failed(`not available: ${away.join(", ")}`)
})

const stateOf = ({ info, problem, state }: ServerStatus): string =>
  problem === undefined
    ? Text.flat(`${info?.name ?? ""} ${info?.version ?? ""}, revision ${info?.protocolVersion ?? ""}`)
    : Text.flat(`${state}: ${problem.message}`)

const toolColumns: ReadonlyArray<Column<Pick<McpProtocol.ToolEntry, "name" | "description">>> = [
  { title: "", cell: ({ name }) => Text.excerpt(name, 64), least: 20 },
  { title: "", cell: ({ description }) => description ?? "", least: 20 }
]

const listTools = (screen: Shape, tools: ReadonlyArray<McpProtocol.ToolEntry>): void => {
  const rows = table(toolColumns, tools, { ...screen.answers, columns: screen.answers.columns - 2 })
  screen.out(rows.replace(/^(?=.)/gm, "  "))
}

const listHidden = (screen: Shape, { hidden, name }: ServerStatus): void => {
  for (const { reason, tool } of hidden) {
    const approve = `kernai mcp approve ${name} ${tool}`
    const why = { changed: `changed: ${approve}`, excess: `new: ${approve}`, repeated: "repeated name" }[reason]
    screen.out(`  ${Text.paint(`${Text.flat(tool)}  hidden, ${Text.flat(why)}`, "warning", screen.answers)}\n`)
  }
}

/** Calls a tool and prints its result. On a terminal the server may ask the person to sign in. */
export const call = Effect.fnUntraced(function* (options: CallFlags) {
  const { mcp: file, server, tool } = options
  const screen = yield* Screen
  const config = yield* Servers.readOne(file, server)
  const input = yield* inputOf(options.input ?? "{}")
  const result = yield* withServers(
    file,
    config,
    McpHub.use((hub) => hub.catalog.callTool(tool, input, server)),
    process.stdin.isTTY ? { show: (url) => Effect.sync(() => screen.error(invitation(url))) } : {}
  )
  screen.out(
    options.json
      ? `${Text.json({ isError: result.isError, content: result.content.map(Content.encode) })}\n`
      : Text.paragraph(McpProtocol.textOf(result))
  )
  if (result.isError) return yield* failed(`the tool ${tool} reports an error`)
})

const Input = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json))

const inputOf = (text: string) =>
  Effect.mapError(Schema.decodeUnknownEffect(Input)(text), () =>
    usage(`the input of a tool is a JSON object, such as '{"path": "notes.txt"}'`)
  )

/** Accepts hidden tools of a server: one, or all of them. */
export const approve = Effect.fnUntraced(function* ({ json, mcp: file, server, tool }: ApproveFlags) {
  const screen = yield* Screen
  const config = yield* Servers.readOne(file, server)
  const approving = McpHub.use((hub) =>
    Effect.gen(function* () {
      const hidden = (yield* hub.status).flatMap(({ hidden }) => hidden)
      return yield* Effect.filter(
        hidden.filter(({ tool: name }) => tool === undefined || tool === name),
        hub.approve
      )
    })
  )
  const approved = yield* withServers(file, config, approving)
  if (approved.length === 0) return yield* usage(`no tool of '${Text.excerpt(server, 80)}' waits for approval`)
  const tools = approved.map(({ description, tool: name }) => ({ name, description }))
  screen.out(json ? `${Text.json({ server, approved })}\n` : table(toolColumns, tools, screen.answers))
})

/** Prints the address for the sign-in, and waits until the person has signed in. */
export const signIn = Effect.fnUntraced(function* (file: string, server: string, asJson: boolean) {
  const screen = yield* Screen
  const config = yield* Servers.readOne(file, server)
  const show = (url: string) => Effect.sync(() => screen.out(asJson ? `${Text.json({ url })}\n` : invitation(url)))
  yield* withServers(
    file,
    config,
    McpHub.use((hub) => hub.signIn(server, show))
  )
  screen.out(asJson ? `${Text.json({ server, isSignedIn: true })}\n` : `signed in to ${Text.flat(server)}\n`)
})

const invitation = (url: string) => `Open this address in a browser on this computer:\n${Text.flat(url)}\n`

/**
 * What `kernai mcp list`, `call`, `approve` and `sign-in` do.
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Bounds from "../../internal/base/bounds.ts"
import * as Content from "../../Content.ts"
import { isJsonObject, type JsonObject, parseJson, plain } from "../../internal/base/json.ts"
import type { McpConfig } from "../../mcp/McpConfig.ts"
import { McpHub, type Options, type ServerStatus } from "../../mcp/McpHub.ts"
import * as McpProtocol from "../../mcp/McpProtocol.ts"
import * as ProtocolRegistry from "../../ProtocolRegistry.ts"
import * as SkillRegistry from "../../SkillRegistry.ts"
import { Codes, CommandFailed, usage } from "../exit.ts"
import { paint } from "../pen.ts"
import { Screen } from "../screen.ts"
import * as Text from "../terminalText.ts"
import * as Servers from "./servers.ts"

/** Lists servers and their tools. */
export const list = Effect.fnUntraced(function* (file: string, server: Option.Option<string>, asJson: boolean) {
  const config = yield* Option.match(server, {
    onNone: () => Servers.read(file),
    onSome: (name) => Servers.readOne(file, name)
  })
  const screen = yield* Screen
  const [status, tools] = yield* using(
    file,
    config,
    McpHub.use((hub) => Effect.all([hub.status, hub.catalog.tools(undefined)]))
  )
  const listed = status.map((server) => ({
    ...server,
    problem: server.problem?.message ?? null,
    skills: Object.fromEntries(server.skills),
    tools: tools.filter((tool) => tool.server === server.name)
  }))
  if (asJson) return screen.out(`${Text.json(plain(listed))}\n`)
  const look = { colors: screen.colors }
  for (const { hidden, name, problem, state, tools } of listed) {
    screen.out(`${paint(Text.flat(name), "title", look)}  ${about(status, name, state, problem)}\n`)
    const width = Math.min(32, Math.max(0, ...tools.map((tool) => tool.name.length)))
    for (const tool of tools) {
      const shown = Text.excerpt(tool.name, 64).padEnd(width)
      screen.out(`  ${shown}  ${Text.excerpt(tool.description ?? "", Math.max(20, screen.columns - width - 4))}\n`)
    }
    for (const tool of hidden) {
      const approve = `kernai mcp approve ${name} ${tool.tool}`
      const advice = { changed: `changed: ${approve}`, excess: `new: ${approve}`, repeated: "repeated name" }[
        tool.reason
      ]
      screen.out(`  ${paint(`${Text.flat(tool.tool)}  hidden, ${Text.flat(advice)}`, "warning", look)}\n`)
    }
  }
})

const about = (status: ReadonlyArray<ServerStatus>, name: string, state: string, problem: string | null): string => {
  const info = status.find((server) => server.name === name)?.info
  if (problem !== null) return Text.flat(`${state}: ${problem}`)
  return Text.flat(`${info?.name ?? ""} ${info?.version ?? ""}, revision ${info?.protocolVersion ?? ""}`)
}

/** Calls one tool and prints what it answers. Who sits at a terminal may be asked to allow it. */
export const call = Effect.fnUntraced(function* (options: {
  readonly file: string
  readonly server: string
  readonly tool: string
  readonly input: Option.Option<string>
  readonly json: boolean
}) {
  const config = yield* Servers.readOne(options.file, options.server)
  const input = yield* inputOf(Option.getOrElse(options.input, () => "{}"))
  const screen = yield* Screen
  const answer = yield* using(
    options.file,
    config,
    McpHub.use((hub) => hub.catalog.callTool(options.tool, input, options.server)),
    process.stdin.isTTY ? { show: (url) => Effect.sync(() => screen.error(invitation(url))) } : {}
  )
  if (options.json) {
    screen.out(`${Text.json({ isError: answer.isError, content: answer.content.map(Content.encode) })}\n`)
  } else {
    screen.out(Text.paragraph(McpProtocol.textOf(answer)))
  }
  if (answer.isError) {
    return yield* new CommandFailed({ code: Codes.failed, reason: `the tool ${options.tool} calls this an error` })
  }
})

const inputOf = Effect.fnUntraced(function* (text: string): Effect.fn.Return<JsonObject, CommandFailed> {
  const parsed = Result.map(parseJson(text, Bounds.jsonDepth), plain)
  return Result.isSuccess(parsed) && isJsonObject(parsed.success)
    ? parsed.success
    : yield* usage(`the input of a tool is a JSON object, such as '{"path": "notes.txt"}'`)
})

/** Accepts tools that are hidden until a person does. */
export const approve = Effect.fnUntraced(function* (file: string, server: string, tool: Option.Option<string>) {
  const config = yield* Servers.readOne(file, server)
  const screen = yield* Screen
  const approved = yield* using(
    file,
    config,
    McpHub.use((hub) =>
      Effect.gen(function* () {
        const hidden = (yield* hub.status).flatMap(({ hidden }) => hidden)
        const asked = hidden.filter(({ tool: name }) => Option.isNone(tool) || tool.value === name)
        return yield* Effect.filter(asked, hub.approve)
      })
    )
  )
  if (approved.length === 0) return yield* usage(`no tool of '${Text.excerpt(server, 80)}' waits for approval`)
  for (const { description, tool } of approved) {
    screen.out(`${Text.flat(tool)}  ${Text.excerpt(description, screen.columns - tool.length - 2)}\n`)
  }
})

/** Signs in to a server: prints the address for the browser, and waits. */
export const signIn = Effect.fnUntraced(function* (file: string, server: string) {
  const config = yield* Servers.readOne(file, server)
  const screen = yield* Screen
  yield* using(
    file,
    config,
    McpHub.use((hub) => hub.signIn(server, (url) => Effect.sync(() => screen.out(invitation(url)))))
  )
  screen.out(`signed in to ${Text.flat(server)}\n`)
})

const invitation = (url: string) => `Open this address in a browser on this computer:\n${Text.flat(url)}\n`

/** Runs with the servers of a config connected; what a server says went wrong is one line. */
const using = <A, E extends { readonly message: string }, R>(
  file: string,
  config: McpConfig,
  use: Effect.Effect<A, E, R | McpHub>,
  options?: Options
) => {
  const registries = Layer.merge(SkillRegistry.layer(), ProtocolRegistry.layer())
  return use.pipe(
    Effect.provide(Servers.layer(file, config, { ...options, protocol: false }).pipe(Layer.provide(registries))),
    Effect.mapError((error) =>
      error instanceof CommandFailed
        ? error
        : new CommandFailed({ code: Codes.failed, reason: Text.excerpt(error.message, 1_000) })
    )
  )
}

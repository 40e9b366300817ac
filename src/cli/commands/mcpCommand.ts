/**
 * `kernai mcp`: uses MCP servers, and is one.
 */

import { Argument, Command, Flag } from "effect/cli"
import * as Effect from "effect/Effect"
import { usage } from "../exit.ts"
import * as Shared from "./flags.ts"

const config = Shared.text("config", "file", "The config of the servers (mcp.yml)").pipe(
  Flag.withAlias("c"),
  Flag.withDefault("mcp.yml")
)
const json = Shared.toggle("json", "Print JSON")
const server = Argument.String("server").pipe(Argument.withDescription("The name of the server in the config"))
const tool = Argument.String("tool").pipe(Argument.withDescription("The name that the server gives the tool"))
const tools = Effect.promise(() => import("../mcp/tools.ts"))

const list = Command.make(
  "list",
  { server: Shared.optionalArgument("server", "The name of one server in the config (default: all)"), config, json },
  (input) => Effect.flatMap(tools, (module) => module.list(input.config, input.server, input.json))
).pipe(Command.withDescription("Connect the servers and list their tools"))

const callFlags = { server, tool, input: Shared.optionalArgument("input", "A JSON object (default: {})"), config, json }

/** The values of the flags of `call`. */
export type CallFlags = Shared.Values<typeof callFlags>

const call = Command.make("call", callFlags, (input) => Effect.flatMap(tools, (module) => module.call(input))).pipe(
  Command.withDescription("Call a tool and print its result"),
  Command.withExamples([
    {
      command: `kernai mcp call files read_text_file '{"path": "letter.txt"}' -c examples/mcp.yml`,
      description: "Read a file through the example server"
    }
  ])
)

const doctor = Command.make("doctor", { config, json }, (input) =>
  Effect.flatMap(
    Effect.promise(() => import("../mcp/serverDoctor.ts")),
    (module) => module.examine(input.config, input.json)
  )
).pipe(Command.withDescription("Show what is wrong with a config and its servers, and what to do"))

const signIn = Command.make("sign-in", { server, config }, (input) =>
  Effect.flatMap(tools, (module) => module.signIn(input.config, input.server))
).pipe(Command.withDescription("Sign in to a server with a browser; the sign-in is stored"))

const approve = Command.make(
  "approve",
  { server, tool: Shared.optionalArgument("tool", "The name of one tool (default: all that wait)"), config },
  (input) => Effect.flatMap(tools, (module) => module.approve(input.config, input.server, input.tool))
).pipe(
  Command.withDescription(
    "Accept tools that changed since they were first seen, or that are new on a server with thousands of tools"
  ),
  Command.withShortDescription("Accept tools that changed")
)

const serveFlags = {
  http: Shared.toggle("http", "Serve HTTP instead of the standard streams; prints the address and the token"),
  host: Shared.optionalText("host", "address", "With --http: the address to listen on (127.0.0.1)"),
  port: Flag.Int("port").pipe(
    Flag.filter(
      (port) => port >= 0 && port <= 65_535,
      () => "a number from 0 to 65535"
    ),
    Flag.withMetavar("<number>"),
    Flag.withDescription("With --http: the port (0, the default, takes a free one)"),
    Shared.optional
  ),
  allowHost: Shared.text(
    "allow-host",
    "host:port",
    "With --http: another name that clients may use for this server; repeatable. 0.0.0.0 needs one"
  ).pipe(Flag.atLeast(0)),
  skillsFrom: Shared.agent.skillsFrom,
  model: Shared.source.model.pipe(Flag.withDescription("Serve an agent with this model and the skills")),
  system: Shared.agent.system.pipe(Flag.withDescription("Instructions for the agent"))
}

/** The values of the flags of `serve`. */
export type ServeFlags = Shared.Values<typeof serveFlags>

const serve = Command.make(
  "serve",
  serveFlags,
  Effect.fnUntraced(function* (input) {
    const forHttp: ReadonlyArray<readonly [flag: string, isGiven: boolean]> = [
      ["--host", input.host !== undefined],
      ["--port", input.port !== undefined],
      ["--allow-host", input.allowHost.length > 0]
    ]
    const idle = forHttp.find(([, isGiven]) => isGiven)
    if (!input.http && idle !== undefined) return yield* usage(`${idle[0]} needs --http`)
    if (input.system !== undefined && input.model === undefined) return yield* usage("--system needs --model")
    const { serve } = yield* Effect.promise(() => import("../mcp/serve.ts"))
    yield* serve(input)
  })
).pipe(
  Command.withDescription("Serve skills, or an agent, to other programs as an MCP server"),
  Command.withShortDescription("Serve skills, or an agent")
)

export const mcp = Command.make("mcp").pipe(
  Command.withDescription("Use MCP servers, or be one"),
  Command.withSubcommands([list, call, doctor, signIn, approve, serve])
)

/** Serves an agent to an editor. */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AcpServe from "../../acp/AcpServe.ts"
import type { JsonObject } from "../../kit/json.ts"
import * as WorkspacePolicy from "../../workspace/WorkspacePolicy.ts"
import * as WorkspaceSkills from "../../workspace/WorkspaceSkills.ts"
import * as CliAgent from "../cliAgent.ts"
import type { AcpFlags } from "../commands/acpFlags.ts"
import { usage } from "../exit.ts"
import { serversOf } from "./sessionServers.ts"
import { throughEditor } from "./editorBackend.ts"
import * as Settings from "../settings.ts"
import * as Store from "../storeFlag.ts"

/** Serves until the editor leaves. */
export const serve = Effect.fnUntraced(function* ({ workspace, ...flags }: AcpFlags) {
  const ofWorkspace = flags.sandbox === true ? "--sandbox" : flags.plan === true ? "--plan" : undefined
  if (!workspace && ofWorkspace !== undefined) return yield* usage(`${ofWorkspace} needs --workspace`)
  const settings = yield* Settings.ofFlags(flags)
  const store = yield* Store.builtOf(yield* Store.openNamed(flags))
  const settingsIn = (cwd: string) => (workspace ? { ...settings, workspace: cwd } : settings)
  const { agent } = yield* CliAgent.make(settingsIn("."), store, { maxSteps: 50 })
  const base = agent()
  yield* AcpServe.stdio({
    // A reply without blocks is an answer.
    agent: { ...base, prose: base.prose === "auto" ? "final" : base.prose },
    modes: !workspace ? [] : settings.plan === true ? [planMode, workMode] : [workMode, planMode],
    similar,
    layer: ({ cwd, editor, mcpServers, mode }) => {
      const work = {
        mode: Effect.map(mode, (id) => (id === planMode.id ? planMode.id : workMode.id)),
        around: throughEditor(editor, { hasTerminal: settings.sandbox !== true })
      }
      return Layer.unwrap(
        Effect.gen(function* () {
          const servers = yield* serversOf(mcpServers)
          return (yield* CliAgent.make(settingsIn(cwd), store, { work, servers })).kernel
        })
      )
    }
  }).pipe(Effect.provide(store.runs))
}, Effect.scoped)

const planMode = { id: "plan", name: "Plan", description: "Read and plan; nothing is changed" } as const

const workMode = { id: "work", name: "Work", description: "Change files; ask before commands" } as const

/** A command is allowed together with those that begin with the same words. */
const similar = (name: string, { command }: JsonObject): ReadonlyArray<string> =>
  name === WorkspaceSkills.shell.name && typeof command === "string" ? WorkspacePolicy.prefixesOf(command) : [name]

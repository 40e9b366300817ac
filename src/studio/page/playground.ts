/** Where a turn is played again, and for which runs. */

import type { RunState } from "../../RunState.ts"
import { canChange, info } from "./pageStore.ts"

/** Returns the address of the playground of the last turn up to a revision. */
export const playAddress = (runId: string, revision: number): string =>
  `#/play/${encodeURIComponent(runId)}?rev=${revision}`

/** Returns whether this server runs forks of a run: it has the agent, and changes are allowed. */
export const isPlayable = ({ agent }: RunState): boolean =>
  canChange.value && info.value.agents.some(({ name }) => name === agent)

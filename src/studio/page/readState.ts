/** Reads runs that are not the open one. */

import type { RunState } from "../../RunState.ts"
import { Journal } from "./journal.ts"
import { data } from "./pageStore.ts"

const pageOfRecords = 2_000

/** Reads the whole journal of a run. */
export const readJournal = async (runId: string): Promise<Journal> => {
  const journal = new Journal()
  for (;;) {
    const { damage, records, revision } = await data().records(runId, journal.revision, pageOfRecords)
    journal.add(records)
    if (journal.revision >= revision || records.length === 0 || damage !== undefined) return journal
  }
}

/** Reads the last state of a run. */
export const readState = async (runId: string): Promise<RunState> => {
  const state = (await readJournal(runId)).stateAt(Infinity)
  if (state === undefined) throw new Error(`the journal of ${runId} cannot be read`)
  return state
}

/** DBOS as a side of the comparison of durable runs. Each run is a workflow of two steps for each step of ours. */
import { DBOS } from "@dbos-inc/dbos-sdk"
import { concurrency, type Peer, steps } from "../durableSide.ts"

export const queue = "runs"

const work = async (): Promise<string> => {
  for (let step = 0; step < steps; step++) {
    const reply = await DBOS.runStep(async () => ({ name: "pay", params: { turn: step } }), { name: "model" })
    await DBOS.runStep(async () => `paid ${reply.params.turn}`, { name: "pay" })
  }
  return "done"
}

export const open = async (url: string, role: "alone" | "worker"): Promise<Peer> => {
  DBOS.setConfig({ name: "bench", systemDatabaseUrl: url, logLevel: "error", runAdminServer: false })
  const workflow = DBOS.registerWorkflow(work, { name: "work" })
  await DBOS.launch()
  if (role === "worker") {
    await DBOS.registerQueue(queue, { workerConcurrency: concurrency, minPollingIntervalMs: 100 })
  }
  return { run: async (workflowID) => (await DBOS.startWorkflow(workflow, { workflowID })()).getResult() }
}

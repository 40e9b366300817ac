/** LangGraph with its `PostgresSaver` as a side of the comparison of durable runs: a graph of a model and a call. */
import { Annotation, END, START, StateGraph } from "@langchain/langgraph"
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres"
import { type Peer, steps } from "../durableSide.ts"

const state = Annotation.Root({
  messages: Annotation<ReadonlyArray<string>>({ reducer: (all, more) => [...all, ...more], default: () => [] })
})

export const open = async (url: string): Promise<Peer> => {
  const checkpointer = PostgresSaver.fromConnString(url)
  await checkpointer.setup()
  const graph = new StateGraph(state)
    .addNode("model", async ({ messages }) => ({ messages: [`pay ${messages.length / 2}`] }))
    .addNode("pay", async () => ({ messages: ["paid"] }))
    .addEdge(START, "model")
    .addEdge("model", "pay")
    .addConditionalEdges("pay", ({ messages }) => (messages.length < 2 * steps ? "model" : END))
    .compile({ checkpointer })
  return {
    run: (thread_id) =>
      graph.invoke({ messages: [] }, { configurable: { thread_id }, recursionLimit: 3 * steps, durability: "sync" })
  }
}

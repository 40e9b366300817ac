import { MockProvider } from "kernai/testing"

const call = (name: string, input: { readonly [key: string]: string }) => ({ calls: [{ name, input }] })

/** A scripted model. */
export const model = () =>
  MockProvider.make(
    call("shell", { command: "bash test.sh" }),
    call("grep", { pattern: "echo" }),
    call("edit", { file_path: "sum.sh", old_string: "$1 - $2", new_string: "$1 + $2" }),
    call("shell", { command: "bash test.sh" }),
    "The sum was a difference. The test passes."
  )

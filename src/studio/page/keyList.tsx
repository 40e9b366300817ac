/** The list of keys. */

import { DialogBox } from "./dialogBox.tsx"
import { keys } from "./keys.ts"
import { hasKeys, setKeys, showKeys } from "./pageStore.ts"

const close = () => (showKeys.value = false)

export const KeyList = () => (
  <DialogBox label="Keys" onClose={close}>
    <h2>Keys</h2>
    <dl>
      {keys.map(([key, what]) => (
        <div key={key}>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
    <p>
      <label>
        <input type="checkbox" checked={hasKeys.value} onChange={(event) => setKeys(event.currentTarget.checked)} />{" "}
        Single keys act
      </label>
    </p>
    <button onClick={close}>Close</button>
  </DialogBox>
)

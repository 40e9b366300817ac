/** The list of keys. */

import { keys } from "./keys.ts"
import { hasKeys, setKeys, showKeys } from "./pageStore.ts"

export const KeyList = () => (
  <div class="sheet" role="dialog" aria-label="Keys" aria-modal="true">
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
        single keys act
      </label>
    </p>
    <button onClick={() => (showKeys.value = false)}>close</button>
  </div>
)

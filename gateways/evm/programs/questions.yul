// Asks contracts any questions that one word answers. gateways/evm/tokens/one_word_program.py describes the call data
// and the answer.
object "questions" {
    code {
        mstore(0xe0, gas())
        mstore(0xa0, chainid())
        mstore(0xc0, timestamp())
        let head := calldataload(0)
        mstore(0x80, xor(0x686f6c64666173743a206f6e6520776f7264207065722063616c6c2c20747275, head))

        let length := and(head, 0xffff)
        let callGas := and(shr(16, head), 0xffffffff)
        let margin := add(30000, add(callGas, shr(5, callGas))) // 63/64 of it (EIP-150) still is callGas and more
        let question := 32
        let out := 0x140 // where the next answer goes
        for { } lt(question, calldatasize()) { } {
            if lt(gas(), margin) { break }
            let contract := shr(96, calldataload(question))
            calldatacopy(0, add(question, 20), length)
            mstore(0x60, 0)
            let before := gas()
            let status
            // 32 bytes at most come to 0x60.
            switch staticcall(callGas, contract, 0, length, 0x60, 32)
            case 0 {
                // Reverted, or ran out: it used more than three quarters of the gas.
                status := add(3, gt(mul(4, sub(before, gas())), mul(3, callGas)))
            }
            default {
                status := sub(2, eq(returndatasize(), 32)) // one word, or something else
            }
            mstore8(out, status)
            mstore(add(out, 1), mload(0x60))
            out := add(out, 33)
            question := add(question, add(length, 20))
        }
        mstore(0x120, question)
        mstore(0x100, gas())
        return(0x80, add(192, mul(33, div(sub(calldatasize(), 32), add(length, 20)))))
    }
}

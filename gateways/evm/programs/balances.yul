// Asks many contracts for balances, each about owners of its own. gateways/evm/balances/balances_program.py describes
// the call data and the answer.
object "balances" {
    code {
        // Each balanceOf has exactly this gas, and starts only with `margin` left: 63/64 of that (EIP-150) is more.
        let callGas := 200000
        let margin := 215000
        // Kept for every entry, so that each one has its record even when nobody is asked.
        let walkGas := 500

        mstore(0xe0, gas())
        mstore(0xa0, chainid())
        mstore(0xc0, timestamp())
        let head := calldataload(0)
        mstore(0x80, xor(0x686f6c64666173742062616c616e6365206c6f6f702c2072756e207468697321, head))
        mstore(0, shl(224, 0x70a08231)) // balanceOf(address) at 0, its argument at 4

        let width := byte(27, head)
        let shift := sub(256, mul(8, width))
        let cap := sub(shl(mul(8, width), 1), 2)
        let count := and(shr(16, head), 0xffff)
        let owners := add(32, mul(26, count)) // where they begin in the call data
        let least := add(margin, mul(walkGas, count))
        let left := and(head, 0xffff) // the weight of the contracts to come
        let floor := 0 // the gas that is not the present contract's to use
        let out := 0x120 // where the next cell goes

        for { let e := 32 } lt(e, owners) { e := add(e, 26) } {
            let entry := shr(48, calldataload(e))
            let weight := and(shr(32, entry), 0xffff)
            // Entries of the same contract follow each other; only the first one has a weight.
            if weight {
                floor := sub(gas(), div(mul(gas(), weight), left))
                if slt(floor, least) { floor := least }
                left := sub(left, weight)
            }
            let owner := add(owners, mul(20, and(shr(16, entry), 0xffff)))
            let end := add(owner, mul(20, and(entry, 0xffff)))
            let contract := shr(48, entry)
            for { } and(lt(owner, end), gt(gas(), floor)) { owner := add(owner, 20) } {
                mstore(4, shr(96, calldataload(owner)))
                // 32 bytes at most come to 0x40.
                if and(eq(returndatasize(), 32), staticcall(callGas, contract, 0, 36, 0x40, 32)) {
                    let amount := mload(0x40)
                    if gt(amount, cap) { amount := cap }
                    mstore(out, shl(shift, add(amount, 1)))
                }
                out := add(out, width)
            }
            let missed := div(sub(end, owner), 20)
            out := add(out, mul(missed, width))
            mstore(out, shl(192, or(shl(48, missed), and(gas(), 0xffffffffffff))))
            out := add(out, 8)
        }
        mstore(0x100, gas())
        return(0x80, sub(out, 0x80))
    }
}

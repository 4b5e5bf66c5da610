// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// Many calls in one, answering to the selectors of the contract that real chains have at a well-known address.
contract Multicall3 {
    struct Call {
        address target;
        bytes callData;
    }

    struct Call3 {
        address target;
        bool allowFailure;
        bytes callData;
    }

    struct Call3Value {
        address target;
        bool allowFailure;
        uint256 value;
        bytes callData;
    }

    struct Result {
        bool success;
        bytes returnData;
    }

    function aggregate(Call[] calldata calls) external payable returns (uint256 blockNumber, bytes[] memory answers) {
        blockNumber = block.number;
        answers = new bytes[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            answers[i] = _call(calls[i].target, 0, false, calls[i].callData).returnData;
        }
    }

    function tryAggregate(bool requireSuccess, Call[] calldata calls)
        public
        payable
        returns (Result[] memory answers)
    {
        answers = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            answers[i] = _call(calls[i].target, 0, !requireSuccess, calls[i].callData);
        }
    }

    function tryBlockAndAggregate(bool requireSuccess, Call[] calldata calls)
        public
        payable
        returns (uint256 blockNumber, bytes32 blockHash, Result[] memory answers)
    {
        return (block.number, blockhash(block.number), tryAggregate(requireSuccess, calls));
    }

    function blockAndAggregate(Call[] calldata calls)
        external
        payable
        returns (uint256 blockNumber, bytes32 blockHash, Result[] memory answers)
    {
        return tryBlockAndAggregate(true, calls);
    }

    function aggregate3(Call3[] calldata calls) external payable returns (Result[] memory answers) {
        answers = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            answers[i] = _call(calls[i].target, 0, calls[i].allowFailure, calls[i].callData);
        }
    }

    function aggregate3Value(Call3Value[] calldata calls) external payable returns (Result[] memory answers) {
        answers = new Result[](calls.length);
        uint256 spent;
        for (uint256 i = 0; i < calls.length; i++) {
            spent += calls[i].value;
            answers[i] = _call(calls[i].target, calls[i].value, calls[i].allowFailure, calls[i].callData);
        }
        require(msg.value == spent, "Multicall3: value mismatch");
    }

    function getBlockHash(uint256 number) external view returns (bytes32) {
        return blockhash(number);
    }

    function getBlockNumber() external view returns (uint256) {
        return block.number;
    }

    function getCurrentBlockCoinbase() external view returns (address) {
        return block.coinbase;
    }

    function getCurrentBlockGasLimit() external view returns (uint256) {
        return block.gaslimit;
    }

    function getCurrentBlockTimestamp() external view returns (uint256) {
        return block.timestamp;
    }

    function getEthBalance(address account) external view returns (uint256) {
        return account.balance;
    }

    function getLastBlockHash() external view returns (bytes32) {
        return blockhash(block.number - 1);
    }

    function getBasefee() external view returns (uint256) {
        return block.basefee;
    }

    function getChainId() external view returns (uint256) {
        return block.chainid;
    }

    function _call(address target, uint256 value, bool mayFail, bytes calldata data)
        private
        returns (Result memory answer)
    {
        (answer.success, answer.returnData) = target.call{value: value}(data);
        require(answer.success || mayFail, "Multicall3: call failed");
    }
}
